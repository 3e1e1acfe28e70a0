package kube_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/test/tier"
)

// limit is long enough for a busy machine to open a connection.
const limit = 10 * time.Second

func TestAnUpgradedConnectionOutlivesTheTimeForAnAnswer(t *testing.T) {
	tier.More(t, "it waits for eleven seconds")
	for name, without := range map[string]bool{"WebSockets": false, "SPDY": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := jobtest.Kubelet{NoWebSockets: without, Exec: func(p *jobtest.Process) *metav1.Status {
				time.Sleep(limit + time.Second) // the test is about this time, so it must pass
				_, _ = io.Copy(p.Stdout, p.Stdin)
				return jobtest.Exited(0)
			}}
			c, err := kube.Open(kube.Options{Kubeconfig: jobtest.Kubeconfig(t, k.Before(http.NotFoundHandler()))})
			require.NoError(t, err)
			kube.Patient(c, limit)
			var out strings.Builder
			require.NoError(t, stream.Exec(t.Context(), c, stream.Command{Namespace: "n", Pod: "p", Stdin: strings.NewReader("still there"), Stdout: &out}))
			assert.Equal(t, "still there", out.String())
		})
	}
}

func TestAServerThatDoesNotUpgradeInTimeIsGivenUp(t *testing.T) {
	for name, without := range map[string]bool{"WebSockets": false, "SPDY": true} {
		t.Run(name, func(t *testing.T) {
			end := make(chan struct{})
			k := jobtest.Kubelet{NoWebSockets: true}
			silent := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if without && r.Header.Get("Upgrade") == "websocket" {
					k.Before(http.NotFoundHandler()).ServeHTTP(w, r)
					return
				}
				<-end
			})
			c, err := kube.Open(kube.Options{Kubeconfig: jobtest.Kubeconfig(t, silent)})
			require.NoError(t, err)
			t.Cleanup(func() { close(end) }) // before the server waits for its handlers
			kube.Patient(c, 200*time.Millisecond)
			require.ErrorContains(t, stream.Exec(t.Context(), c, stream.Command{Namespace: "n", Pod: "p"}), "no answer within 200ms")
		})
	}
}
