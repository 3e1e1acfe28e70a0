package gangs

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

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
		assert.Contains(t, text, "not 0 or a positive number")
	}
}
