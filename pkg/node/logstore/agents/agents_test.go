package agents

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

func agent(name, node, address string, port int32) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "pai-system", Labels: map[string]string{"app.kubernetes.io/name": "log-manager"}},
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address}}
}

func TestAnAgentThatIsRenewedIsAwayAndNotMissing(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "line") }))
	t.Cleanup(s.Close)
	host, text, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	client := fake.NewClientset()
	pods := client.CoreV1().Pods("pai-system")
	a := New(pods, func() string { return "sesame" })
	now := time.Now()
	a.now = func() time.Time { return now }
	get := func() error {
		resp, err := a.Get(t.Context(), "n1", "u", "app", nil)
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
		return err
	}
	create := func(p *corev1.Pod) {
		t.Helper()
		_, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.ErrorIs(t, get(), logapi.ErrNoAgent)
	create(agent("a", "n1", host, int32(port)))
	now = now.Add(2 * time.Second)
	require.NoError(t, get(), "an agent that begins is found within seconds")

	require.NoError(t, pods.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	now = now.Add(time.Minute)
	require.ErrorIs(t, get(), logapi.ErrAway, "there is no pod, and was one")
	pending := agent("b", "n1", "", int32(port))
	pending.Status.Phase = corev1.PodPending
	create(pending)
	now = now.Add(6 * time.Minute)
	require.ErrorIs(t, get(), logapi.ErrAway, "its pod has no address yet")
	require.NoError(t, pods.Delete(t.Context(), "b", metav1.DeleteOptions{}))
	ending := agent("c", "n1", host, int32(port))
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: now}, []string{"x"}
	create(ending)
	now = now.Add(2 * time.Second)
	require.ErrorIs(t, get(), logapi.ErrAway, "its pod is being deleted")
	require.NoError(t, pods.Delete(t.Context(), "c", metav1.DeleteOptions{}))
	now = now.Add(2 * time.Second)
	require.ErrorIs(t, get(), logapi.ErrNoAgent, "there was none for minutes")
}

func TestTheAgentOfAMachineIsAsked(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !logapi.Signed(r, "sesame", time.Now()):
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/v1/logs/u/app":
			_, _ = io.WriteString(w, r.URL.RawQuery)
		case r.URL.Path == "/v1/logs/u/bad":
			http.Error(w, "what?", http.StatusBadRequest)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	host, text, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	pods := fake.NewClientset(agent("a", "n1", host, int32(port)), agent("b", "n2", "127.0.0.1", 1), agent("c", "n3", "", 1)).CoreV1().Pods("pai-system")
	a := New(pods, func() string { return "sesame" })
	resp, err := a.Get(t.Context(), "n1", "u", "app", url.Values{"tail": {"3"}})
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "tail=3", string(body))
	for _, c := range []struct {
		node, container string
		want            error
	}{
		{"n1", "other", logapi.ErrNoLog}, {"n1", "bad", ErrBadQuery}, {"n2", "app", logapi.ErrAway}, {"n3", "app", logapi.ErrAway}, {"n4", "app", logapi.ErrNoAgent},
	} {
		_, err := a.Get(t.Context(), c.node, "u", c.container, nil)
		require.ErrorIs(t, err, c.want, c.node)
	}
}

// An upgrade replaces the job controller before the agents. An agent of an earlier release requires another signature and rejects the request.
// Readers must retry, because the agent will be replaced soon. The end of a log must not be archived as if the log was complete.
func TestAnAgentThatRefusesTheControllerIsAway(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer sesame" {
				http.Error(w, "wrong token", status)
				return
			}
			_, _ = io.WriteString(w, "line")
		}))
		t.Cleanup(s.Close)
		host, text, err := net.SplitHostPort(s.Listener.Addr().String())
		require.NoError(t, err)
		port, err := strconv.Atoi(text)
		require.NoError(t, err)
		a := New(fake.NewClientset(agent("a", "n1", host, int32(port))).CoreV1().Pods("pai-system"), func() string { return "sesame" })
		_, err = a.Get(t.Context(), "n1", "u", "app", nil)
		require.ErrorIs(t, err, logapi.ErrAway)
		require.ErrorContains(t, err, "the agent on n1 refuses the job controller")
		require.ErrorContains(t, err, "wrong token); if it stays so after an upgrade, run: paictl service start -n log-manager")
		_, err = a.Use(t.Context(), "n1")
		require.ErrorIs(t, err, logapi.ErrAway)
	}
}

func TestAnAgentIsAskedWhatContainersUse(t *testing.T) {
	answers := map[string]string{"sesame": `[{"pod":"u","container":"c","cpu":1.5,"memoryBytes":7}]`, "damaged": `[{"pod"`}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := ""
		for token, text := range answers {
			if logapi.Signed(r, token, time.Now()) {
				answer = text
			}
		}
		if answer == "" || r.URL.Path != "/v1/use" {
			http.NotFound(w, r) // as one that is older
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	host, text, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	pods := fake.NewClientset(agent("a", "n1", host, int32(port)), agent("b", "n2", "127.0.0.1", 1)).CoreV1().Pods("pai-system")
	with := func(token string) *Agents { return New(pods, func() string { return token }) }
	list, err := with("sesame").Use(t.Context(), "n1")
	require.NoError(t, err)
	cpu := 1.5
	assert.Equal(t, []logapi.Use{{Pod: "u", Container: "c", CPU: &cpu, Memory: 7}}, list)
	_, err = with("sesame").Use(t.Context(), "n2")
	require.ErrorIs(t, err, logapi.ErrAway)
	_, err = with("sesame").Use(t.Context(), "n3")
	require.ErrorIs(t, err, logapi.ErrUnmeasured)
	_, err = with("older").Use(t.Context(), "n1")
	require.ErrorIs(t, err, logapi.ErrUnmeasured)
	_, err = with("damaged").Use(t.Context(), "n1")
	require.ErrorContains(t, err, "read the answer of the agent on n1")
}
