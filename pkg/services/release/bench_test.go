package release

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/action"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube/kubetest"
)

// together is how many charts are installed at once.
const together = 8

// BenchmarkInstall compares Apply with helm install, eight charts in parallel. Each plain
// install asks the API by itself what it serves, as a program of its own would.
//
//	go test -run '^$' -bench Install -benchtime 5x ./pkg/services/release
func BenchmarkInstall(b *testing.B) {
	c := kubetest.Start(b)
	round := 0
	namespace := func(b *testing.B) string {
		b.StopTimer()
		defer b.StartTimer()
		round++
		name := fmt.Sprintf("bench-%d", round)
		_, err := c.Client.CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(b, err)
		return name
	}
	parallel := func(b *testing.B, install func(n int) error) {
		var group errgroup.Group
		for n := range together {
			group.Go(func() error { return install(n) })
		}
		require.NoError(b, group.Wait())
	}
	files := demoFiles()
	for name, text := range files {
		files[name] = renamed(text)
	}
	chart := load(b, files)

	b.Run("paictl", func(b *testing.B) {
		for b.Loop() {
			place := namespace(b)
			m := manager(b, c)
			parallel(b, func(n int) error {
				_, err := m.Apply(b.Context(), Request{Name: fmt.Sprintf("demo-%d", n), Namespace: place, Chart: chart})
				return err
			})
		}
	})
	b.Run("helm", func(b *testing.B) {
		for b.Loop() {
			place := namespace(b)
			parallel(b, func(n int) error {
				conn, err := connect(c, slog.New(slog.DiscardHandler))
				if err != nil {
					return err
				}
				getter := &session{connection: conn, namespace: place, bound: conn.config}
				config := &action.Configuration{}
				if err := config.Init(getter, place, "secret", func(string, ...any) {}); err != nil {
					return err
				}
				config.SetHookOutputFunc(func(_, _, _ string) io.Writer { return io.Discard })
				a := action.NewInstall(config)
				a.ReleaseName, a.Namespace = fmt.Sprintf("demo-%d", n), place
				_, err = a.Run(copyChart(chart), nil)
				return err
			})
		}
	})
}
