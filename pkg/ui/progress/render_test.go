package progress

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/tui"
)

func TestPlainTellsARun(t *testing.T) {
	var out bytes.Buffer
	r := NewPlain(&out, false)
	for _, e := range append(story(), ending()...) {
		r.Emit(e)
	}
	require.NoError(t, r.Close())
	golden(t, "plain.golden", out.String())
}

func TestPlainOfARunWithoutChangesIsTwoLinesAndOnePerHost(t *testing.T) {
	var out bytes.Buffer
	r := NewPlain(&out, false)
	r.Emit(engine.Event{Time: at(0), Kind: engine.EventRunStarted, Message: "cluster up", Hosts: []string{"a"}, Phases: phases})
	for _, p := range phases {
		r.Emit(engine.Event{Time: at(1), Kind: engine.EventPhaseSkipped, Host: "a", Phase: p})
	}
	r.Emit(engine.Event{Time: at(1), Kind: engine.EventHostDone, Host: "a"})
	r.Emit(engine.Event{Time: at(1), Kind: engine.EventRunDone, Summary: &engine.Summary{Hosts: 1, Elapsed: 400 * time.Millisecond}})
	assert.Equal(t, "cluster up: 1 host, 8 phases\na  up to date\n1 host, 0 changed, 0 changes, 0.4 s\n", out.String())
}

func TestPlainOfADryRunCountsWhatIsPlanned(t *testing.T) {
	var out bytes.Buffer
	r := NewPlain(&out, false)
	c := &engine.Change{Host: "a", Phase: "base", Action: "set", Target: "x"}
	r.Emit(engine.Event{Kind: engine.EventPlanned, Host: "a", Phase: "base", Change: c})
	r.Emit(engine.Event{Kind: engine.EventPhaseDone, Host: "a", Phase: "base"})
	r.Emit(engine.Event{Kind: engine.EventRunDone, Summary: &engine.Summary{DryRun: true, Hosts: 1, Changed: 1, Changes: 1}})
	assert.Equal(t, "a  base  1 change planned\n1 host, 1 would change, 1 change planned, 0.0 s\n", out.String())
}

func TestPlainTellsWhyAHostWasLostBeforeItsFirstPhase(t *testing.T) {
	var out bytes.Buffer
	NewPlain(&out, false).Emit(engine.Event{Kind: engine.EventHostSetAside, Host: "a", Phase: "connect", Error: "no route", Hint: "is it on?"})
	assert.Equal(t, "a  connect  FAILED: no route\n  -> is it on?\na  failed; the other hosts continue\n", out.String())
}

func TestNoRenderingLetsAHostControlTheTerminal(t *testing.T) {
	evil := "bad\x1b[2J\x1b]0;title\a\r\nsecond\u202eline"
	e := engine.Event{Kind: engine.EventPhaseFailed, Host: "a\x1b", Phase: "p", Error: evil, Hint: evil}
	var out bytes.Buffer
	NewPlain(&out, false).Emit(e)
	require.NoError(t, WritePlan(&out, []engine.Change{{Host: evil, Phase: evil, Action: "set", Target: evil, Detail: evil, Diff: "+\x1b[31m\n"}}))
	b := newHosts()
	b.apply(e)
	out.WriteString(screen{width: 80, height: 24, p: tui.NewLinePalette(false)}.frame(b.board, ""))
	for _, bad := range []string{"\x1b", "\a", "\r", "\u202e"} {
		assert.NotContains(t, out.String(), bad)
	}
}

func TestJSONLinesReadBackAsTheSameEvents(t *testing.T) {
	var out bytes.Buffer
	j := NewJSON(&out)
	want := append(story(), ending()...)
	for _, e := range want {
		j.Emit(e)
	}
	require.NoError(t, j.Close())
	dec := json.NewDecoder(&out)
	var got []engine.Event
	for dec.More() {
		var e engine.Event
		require.NoError(t, dec.Decode(&e))
		got = append(got, e)
	}
	assert.Equal(t, want, got)
}

type brokenPipe struct{ writes int }

func (b *brokenPipe) Write([]byte) (int, error) { b.writes++; return 0, errors.New("broken pipe") }

func TestAReaderThatWentAwayIsReportedOnceAtTheEnd(t *testing.T) {
	for name, open := range map[string]func(*brokenPipe) Renderer{
		"json":  func(w *brokenPipe) Renderer { return NewJSON(w) },
		"plain": func(w *brokenPipe) Renderer { return NewPlain(w, false) },
	} {
		t.Run(name, func(t *testing.T) {
			w := &brokenPipe{}
			r := open(w)
			for _, e := range story() {
				r.Emit(e)
			}
			require.ErrorContains(t, r.Close(), "broken pipe")
			assert.Equal(t, 1, w.writes)
		})
	}
}

func TestOpenChoosesTheRendering(t *testing.T) {
	io, _, out, errOut := iostreams.Test()
	r := Open(t.Context(), io, "json")
	r.Emit(story()[0])
	require.NoError(t, r.Close())
	assert.Contains(t, out.String(), `"kind":"run-started"`)
	assert.Empty(t, errOut.String())

	out.Reset()
	r = Open(t.Context(), io, "table")
	r.Emit(story()[0])
	require.NoError(t, r.Close())
	assert.Equal(t, "cluster up: 3 hosts, 8 phases\n", errOut.String())
	assert.Empty(t, out.String())

	io.SetTerminal(true)
	r = Open(t.Context(), io, "table")
	assert.IsType(t, &Live{}, r)
	require.NoError(t, r.Close())
}

func TestPlanGroupsByHostAndPhase(t *testing.T) {
	plan := []engine.Change{
		{Host: "master", Phase: "base", Action: "create", Target: "/etc/modules-load.d/paictl.conf", Diff: "@@ -0,0 +1,2 @@\n+overlay\n+br_netfilter\n"},
		{Host: "master", Phase: "base", Action: "set", Target: "net.ipv4.ip_forward", Detail: "0 -> 1"},
		{Host: "master", Phase: "init", Action: "run", Target: "kubeadm init"},
		{Host: "gpu-1", Phase: "containerd", Action: "delete", Target: "/etc/cni/net.d/old.conf"},
		{Host: "gpu-2", Phase: "containerd", Action: "delete", Target: "/etc/cni/net.d/old.conf"},
	}
	var out bytes.Buffer
	require.NoError(t, WritePlan(&out, plan))
	golden(t, "plan.golden", out.String())
}

func TestPlanOfManyEqualHostsStaysShort(t *testing.T) {
	var plan []engine.Change
	for _, h := range crowd(1000)[0].Hosts {
		plan = append(plan, engine.Change{Host: h, Phase: "base", Action: "set", Target: "x"})
	}
	var out bytes.Buffer
	require.NoError(t, WritePlan(&out, plan))
	assert.Contains(t, out.String(), "node-0007 and 992 more (1000 hosts, the same on each)")
	assert.LessOrEqual(t, strings.Count(out.String(), "\n"), 6)
}

func TestAnEmptyPlanSaysSo(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WritePlan(&out, nil))
	assert.Equal(t, "No changes: the hosts match the configuration.\n", out.String())
}

func TestFiguresReadAsAPersonSaysThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0 s", 400 * time.Millisecond: "0.4 s", 9960 * time.Millisecond: "10 s", 38 * time.Second: "38 s",
		59600 * time.Millisecond: "1 min 00 s", 125 * time.Second: "2 min 05 s", 62 * time.Minute: "1 h 02 min",
	} {
		assert.Equal(t, want, duration(d), d)
	}
	assert.Equal(t, "3/12", amount(3, 12))
	assert.Equal(t, "0.5/2.0 kB", amount(500, 2000))
	assert.Equal(t, "120/310 MB", amount(120e6, 310e6))
	assert.Equal(t, "1.2/2.5 GB", amount(1.2e9, 2.5e9))
	assert.Empty(t, amount(5, 0))
	assert.Equal(t, "100%", percent(20, 10))
}

func TestPlainLinesSayWhereFilesComeFrom(t *testing.T) {
	var b bytes.Buffer
	p := NewPlain(&b, false)
	for _, e := range []engine.Event{
		{Time: at(0), Kind: engine.EventRunStarted, Message: "cluster up", Hosts: []string{"w1"}, Phases: []string{"images"}},
		{Time: at(1), Kind: engine.EventNote, Message: "files for 4 machines"},
		{Time: at(2), Kind: engine.EventPhaseStarted, Host: "w1", Phase: "images"},
		{Time: at(20), Kind: engine.EventProgress, Host: "w1", Phase: "images", Message: "from w3", Done: 5e6, Total: 1e7},
		{Time: at(30), Kind: engine.EventRunDone, Summary: &engine.Summary{Hosts: 1, Changed: 1, Changes: 1, Elapsed: 30 * time.Second,
			Traffic: &engine.Traffic{Sent: 12e6, Passed: 34e6}}},
	} {
		p.Emit(e)
	}
	assert.Contains(t, b.String(), "\nfiles for 4 machines\n")
	assert.Contains(t, b.String(), "w1  images  from w3 5/10 MB")
	assert.Contains(t, b.String(), "1 change, 30 s; 12.0 MB sent from here, 34.0 MB from machine to machine\n")
}
