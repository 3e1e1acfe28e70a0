package books

import (
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

func TestAPartOfTheQueueIsToldAsItIsInTheWhole(t *testing.T) {
	c := newCluster(t, twoTeams)
	for _, p := range []*corev1.Pod{
		newPod("q1", spec("A", 1, "ann~early/0:1:1")), newPod("q2", spec("B", 9, "bob~urgent/0:2:2")),
		newPod("q3", spec("A", 1, "ann~earlybird/0:1:1")), newPod("q4", spec("A", 1, "ann~early/1:1:1")),
	} {
		c.clock.add(time.Second)
		c.create(p)
	}
	for query, want := range map[string]string{
		"":                                       "4: 1/1 ann~early/0, 2/1 bob~urgent/0, 3/2 ann~earlybird/0, 4/3 ann~early/1, ",
		"?limit=2":                               "4: 1/1 ann~early/0, 2/1 bob~urgent/0, ",
		"?limit=0&vc=A":                          "3: 1/1 ann~early/0, 3/2 ann~earlybird/0, 4/3 ann~early/1, ",
		"?prefix=ann~early/":                     "2: 1/1 ann~early/0, 4/3 ann~early/1, ",
		"?prefix=ann~early/&prefix=bob~&limit=2": "3: 1/1 ann~early/0, 2/1 bob~urgent/0, ",
		"?prefix=ann~early/&vc=B":                "0: ",
		"?prefix=nobody~train/":                  "0: ",
		"?prefix=%00&prefix='&prefix=%2e%2e%2f":  "0: ",
		"?vc=nothing":                            "0: ",
		"?prefix=" + fmt.Sprintf("%04000d", 0) + "": "0: ",
	} {
		var got api.Queue
		c.get("/v1/queue"+query, &got)
		text := fmt.Sprintf("%d: ", got.Total)
		for _, g := range got.Items {
			text += fmt.Sprintf("%d/%d %s, ", g.Position, g.PositionInVC, g.Group)
		}
		assert.Equal(t, want, text, query)
		assert.NotNil(t, got.Items)
	}
	for _, limit := range []string{"-1", "x", "1e3", "99999999999999999999"} {
		code, text := c.ask(http.MethodGet, "/v1/queue?limit="+limit, nil)
		assert.Equal(t, http.StatusBadRequest, code)
		assert.Contains(t, text, "not a number from 0")
	}
}

// BenchmarkQueue asks for parts of a queue of 10,000 gangs.
func BenchmarkQueue(b *testing.B) {
	config, findings := parseConfiguration("f", twoTeams)
	require.Empty(b, findings.Errors())
	client := fake.NewClientset()
	books := New(client, informers.NewSharedInformerFactory(client, 0), &testQueue{}, testOptions, slog.New(slog.DiscardHandler), &record.FakeRecorder{}, time.Now)
	s, err := books.newState(config, nil, nil)
	require.NoError(b, err)
	for i := range 10_000 {
		p := newPod(fmt.Sprint("p", i), spec("A", 1, fmt.Sprintf("ann~job%d/0:1:1", i)))
		p.UID = types.UID(fmt.Sprint("u", i))
		s.observe(p)
	}
	for name, q := range map[string]api.QueueQuery{"all": {}, "first_50": {Limit: 50}, "of_a_job": {Prefixes: []string{"ann~job77/"}}, "of_none": {Prefixes: []string{"bob~"}}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.listQueue(q)
			}
		})
	}
}
