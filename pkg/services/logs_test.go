package services

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/test/output"
)

func (l *lab) addPod(name, service string, containers ...string) {
	l.t.Helper()
	pod := podOf(service)
	pod.Name = name
	for _, c := range containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
	_, err := l.client.CoreV1().Pods("pai-system").Create(l.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(l.t, err)
}

func TestLogsOfAllPodsHaveTheirPodsBeforeThem(t *testing.T) {
	l := started(t)
	l.addPod("grafana-b", "grafana", "main")
	l.addPod("grafana-a", "grafana", "main", "side")
	l.addPod("other", "prometheus", "main")
	var out bytes.Buffer
	require.NoError(t, l.Logs(t.Context(), LogOptions{Name: "grafana", Tail: 5, Out: &out}))
	assert.ElementsMatch(t, []string{"grafana-a/main  fake logs", "grafana-a/side  fake logs", "grafana-b  fake logs"}, lines(out.String()))
}

func TestLogsOfAJobAreThere(t *testing.T) {
	l := started(t)
	rel := l.releases.have["storage"]
	rel.Manifest = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: folders}\n"
	l.releases.have["storage"] = rel
	l.addPod("folders-x", "storage", "main")
	pod, err := l.client.CoreV1().Pods("pai-system").Get(t.Context(), "folders-x", metav1.GetOptions{})
	require.NoError(t, err)
	pod.Labels[batchv1.JobNameLabel] = "folders"
	_, err = l.client.CoreV1().Pods("pai-system").Update(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, l.Logs(t.Context(), LogOptions{Name: "storage", Tail: 5, Out: &out}))
	assert.Equal(t, []string{"folders-x  fake logs"}, lines(out.String()))
}

func lines(s string) []string {
	var out []string
	for _, l := range bytes.Split(bytes.TrimSpace([]byte(s)), []byte("\n")) {
		out = append(out, string(l))
	}
	return out
}

func TestLogsOfWhatDoesNotRunSayWhatToDo(t *testing.T) {
	l := newLab(t)
	err := l.Logs(t.Context(), LogOptions{Name: "grafana"})
	require.ErrorContains(t, err, "grafana does not run")
	assert.Contains(t, hint.Of(err), "service start -n grafana")
	require.NoError(t, l.start("grafana"))
	require.ErrorContains(t, l.Logs(t.Context(), LogOptions{Name: "grafana"}), "grafana has no pods")
	require.ErrorContains(t, l.Logs(t.Context(), LogOptions{Name: "nobody"}), "there is no service")
}

func TestAFollowerSeesPodsThatComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		l.addPod("grafana-a", "grafana", "main")
		ctx, cancel := context.WithCancel(t.Context())
		out, ended := &output.Buffer{}, make(chan error)
		go func() { ended <- l.Logs(ctx, LogOptions{Name: "grafana", Follow: true, Tail: -1, Out: out}) }()
		time.Sleep(5 * time.Second)
		l.addPod("grafana-b", "grafana", "main")
		time.Sleep(5 * time.Second)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		assert.Equal(t, []string{"grafana-a  fake logs", "grafana-b  fake logs"}, lines(out.String()), "each once")
	})
}

func TestTheRestOfALongLineStaysBehindItsBeginning(t *testing.T) {
	l := started(t)
	l.addPod("grafana-a", "grafana", "main")
	long := strings.Repeat("x", 1<<20)
	l.client.PrependReactor("get", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "log" {
			return false, nil, nil
		}
		return true, &runtime.Unknown{Raw: []byte("not a time\n2026-03-01T12:00:00Z first\n2026-03-01T12:00:01Z " + long + long + "end\n2026-03-01T12:00:02Z last\n")}, nil
	})
	var out bytes.Buffer
	require.NoError(t, l.Logs(t.Context(), LogOptions{Name: "grafana", Tail: -1, Out: &out}))
	var ends []string
	for _, line := range lines(out.String()) {
		ends = append(ends, line[max(0, len(line)-4):])
	}
	assert.Equal(t, []string{"time", "irst", "xxxx", "xxxx", "xend", "last"}, ends)
}
