package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// compares returns a copy whose comparison returns files and err, and a list of the compared texts.
func compares(files []string, err error) (*engine.Copy, *[]string) {
	asked := &[]string{}
	return &engine.Copy{Namespace: "pai-system", Name: "pai-configuration", Push: "paictl config push -p conf",
		Compare: func(configMap []byte) (int, []string, error) {
			*asked = append(*asked, string(configMap))
			return 3, files, err
		}}, asked
}

func warnings(o *outcome) []engine.Event {
	var out []engine.Event
	for _, e := range o.events {
		if e.Kind == engine.EventWarning {
			out = append(out, e)
		}
	}
	return out
}

func TestARunEndsWithWhatServicesDoNotKnowYet(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	withCopy := func(c *engine.Copy) *outcome {
		o := l.up(t.Context(), func(o *labOptions, _ *ssh.Options) { o.Copy = c })
		require.NoError(t, o.err, "%s", l.story(o))
		return o
	}
	never, asked := compares([]string{"layout.yaml"}, nil)
	assert.Empty(t, warnings(withCopy(never)), "nothing was ever pushed")
	assert.Empty(t, *asked)

	require.NoError(t, os.WriteFile(filepath.Join(l.cluster, "objects", "pai-configuration"), []byte("{pushed}\n"), 0o644))
	older, asked := compares([]string{"layout.yaml", "services-configuration.yaml"}, nil)
	o := withCopy(older)
	assert.Equal(t, []string{"{pushed}\n"}, *asked)
	told := warnings(o)
	require.Len(t, told, 1)
	assert.Equal(t, "the cluster's copy of the configuration (revision 3) differs: layout.yaml, services-configuration.yaml; services still use the copy", told[0].Message)
	assert.Equal(t, "paictl config push -p conf", told[0].Hint)
	assert.Equal(t, engine.EventRunDone, o.events[len(o.events)-1].Kind)
	assert.Equal(t, engine.EventWarning, o.events[len(o.events)-2].Kind, "it is said before the summary")
	assert.Equal(t, 3, o.trips.Host("m1").RoundTrips, "lock, detect and the copy")

	same, _ := compares(nil, nil)
	assert.Empty(t, warnings(withCopy(same)))
	broken, _ := compares([]string{"layout.yaml"}, errors.New("not paictl's"))
	assert.Empty(t, warnings(withCopy(broken)), "what can't be compared is no failure")

	dry, asked := compares([]string{"layout.yaml"}, nil)
	require.NoError(t, l.up(t.Context(), func(o *labOptions, _ *ssh.Options) { o.Copy, o.DryRun = dry, true }).err)
	assert.Empty(t, *asked, "a dry run makes nothing that services could miss")
}

func TestARemovalEndsWithWhatServicesDoNotKnowYet(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	l.made()
	require.NoError(t, os.WriteFile(filepath.Join(l.cluster, "objects", "pai-configuration"), []byte("{pushed}\n"), 0o644))
	c, _ := compares([]string{"layout.yaml"}, nil)
	client, events := ssh.NewClient(sshtest.Options(t, l.servers()...)), &sink{}
	defer func() { _ = client.Close() }()
	o := engine.Options{Dialer: client, Sink: events, Clock: time.Now, Owner: "tester", StepTimeout: 5 * time.Minute, Limit: []string{"w1"}, Copy: c}
	require.NoError(t, RemoveNodes(t.Context(), l.spec(), o, RemoveOptions{}))
	told := warnings(&outcome{events: events.events})
	require.Len(t, told, 1)
	assert.Contains(t, told[0].Message, "differs: layout.yaml; services still use the copy")
}
