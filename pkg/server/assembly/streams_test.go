package assembly_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/openpai/paictl/pkg/job/jobtest"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// rooms is a house with simulated containers of jobs.
type rooms struct {
	*house
	kubelet *jobtest.Kubelet
}

func newRooms(t *testing.T) *rooms {
	t.Helper()
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	k := &jobtest.Kubelet{
		Exec: func(p *jobtest.Process) *metav1.Status {
			switch p.Args[0] {
			case "cat":
				_, _ = io.Copy(p.Stdout, p.Stdin)
			case "asked":
				fmt.Fprintln(p.Stdout, p.Query.Encode())
			case "wait":
				fmt.Fprintln(p.Stdout, "begun")
				_, _ = io.Copy(io.Discard, p.Stdin)
				return nil
			case "fail":
				return jobtest.Exited(7)
			}
			return jobtest.Exited(0)
		},
		Port: func(number string, conn io.ReadWriter) error {
			line := make([]byte, 5)
			if _, err := io.ReadFull(conn, line); err != nil {
				return err
			}
			_, err := fmt.Fprintf(conn, "%s on %s", line, number)
			return err
		},
	}
	h, err := jobtest.Handler(c.Config, nil)
	require.NoError(t, err)
	front := httptest.NewServer(k.Before(h))
	t.Cleanup(front.Close)
	return &rooms{house: houseOn(t, c, servertest.Options{API: func(config *rest.Config) { *config = rest.Config{Host: front.URL} }}), kubelet: k}
}

func (r *house) runs(t *testing.T, user, name string) {
	t.Helper()
	object := fv1.ObjectName(user, name)
	f := framework(t, r.cluster, user, name)
	role := f.Spec.TaskRoles[0].Name
	pods := r.cluster.Client.CoreV1().Pods(kube.JobNamespace)
	p, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fv1.PodName(object, role, 0), Labels: map[string]string{
		fv1.LabelFramework: object, fv1.LabelTaskRole: role, fv1.LabelTaskIndex: "0"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "i"}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	_, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// config returns client-go's configuration for requests to the server as a person.
func (r *rooms) config(who string) *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.TLS.Certificate().Raw})
	return &rest.Config{Host: r.URL, BearerToken: r.tokens[who], TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// exec runs a command as a person, over SPDY or WebSocket.
func (r *rooms) exec(t *testing.T, ctx context.Context, way, who, path, stdin string, out io.Writer) error {
	t.Helper()
	target := r.URL + path
	var e remotecommand.Executor
	var err error
	if way == "websocket" {
		e, err = remotecommand.NewWebSocketExecutor(r.config(who), http.MethodGet, target)
	} else {
		u := mustParse(t, target)
		e, err = remotecommand.NewSPDYExecutor(r.config(who), http.MethodPost, u)
	}
	require.NoError(t, err)
	o := remotecommand.StreamOptions{Stdout: out}
	if stdin != "" {
		o.Stdin = strings.NewReader(stdin)
	}
	return e.StreamWithContext(ctx, o)
}

const inTrain = "/api/v3/jobs/ann/inside/tasks/Worker_1/0/exec?stdout=true&command="

func TestAPersonEntersTheirOwnTasks(t *testing.T) {
	r := newRooms(t)
	require.Equal(t, 202, r.Submit(r.tokens["ann"], "inside", "speech").Status)
	r.runs(t, "ann", "inside")
	for _, way := range []string{"websocket", "spdy"} {
		t.Run(way, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, r.exec(t, t.Context(), way, "ann", inTrain+"cat&stdin=true", "hello", &out))
			assert.Equal(t, "hello", out.String())

			var exit utilexec.CodeExitError
			require.ErrorAs(t, r.exec(t, t.Context(), way, "ann", inTrain+"fail", "", io.Discard), &exit)
			assert.Equal(t, 7, exit.Code)

			// The server ignores the client's parameters for the container, and builds the request to the API server itself.
			out.Reset()
			require.NoError(t, r.exec(t, t.Context(), way, "ann", inTrain+"asked&container=init&pod=other&namespace=kube-system&command=two%20words", "", &out))
			assert.Equal(t, "command=asked&command=two+words&container=app&stdout=true\n", out.String())

			for who, code := range map[string]string{"abe": "ForbiddenUserError", "vic": "NoJobError", "nobody": "UnauthorizedUserError"} {
				err := r.exec(t, t.Context(), way, who, inTrain+"cat", "", io.Discard)
				require.Error(t, err, who)
				assert.True(t, httpstream.IsUpgradeFailure(err) || way == "spdy", "%v", err)
				assert.NotContains(t, r.Printed.String(), "panic")
				_ = code
			}
			require.Error(t, r.exec(t, t.Context(), way, "ann", strings.Replace(inTrain, "/0/", "/1/", 1)+"cat", "", io.Discard), "it doesn't run")
		})
	}
	// waits enters a task as a person, and runs a command that waits until the connection is closed.
	waits := func(t *testing.T, who, job string) <-chan error {
		t.Helper()
		begun, ended := &signal{made: make(chan struct{})}, make(chan error, 1)
		in, keep := io.Pipe()
		t.Cleanup(func() { _ = keep.Close() })
		go func() {
			e, err := remotecommand.NewWebSocketExecutor(r.config(who), http.MethodGet, r.URL+"/api/v3/jobs/"+job+"/tasks/Worker_1/0/exec?stdout=true&stdin=true&command=wait")
			if err == nil {
				err = e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: in, Stdout: begun})
			}
			ended <- err
		}()
		select {
		case <-begun.made:
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		}
		return ended
	}
	t.Run("a token that is revoked ends it", func(t *testing.T) {
		r.person(t, "eve", "speech")
		require.Equal(t, 202, r.Submit(r.tokens["eve"], "inside", "speech").Status)
		r.runs(t, "eve", "inside")
		ended, at := waits(t, "eve", "eve/inside"), time.Now()
		_, err := r.Tokens.RevokeAll(t.Context(), "eve", false)
		require.NoError(t, err)
		require.Error(t, <-ended)
		assert.Less(t, time.Since(at), 3*time.Second)
	})
	t.Run("a grant that is taken away ends it", func(t *testing.T) {
		r.person(t, "boss", v1.GroupAdministrators)
		ended, at := waits(t, "boss", "ann/inside"), time.Now()
		_, err := r.People.Update(t.Context(), "boss", func(u *v1.UserSpec) error { u.Groups = []string{"speech"}; return nil })
		require.NoError(t, err)
		select {
		case err := <-ended:
			require.Error(t, err)
		case <-time.After(20 * time.Second):
			t.Fatal("who is no administrator is still in another's task")
		}
		assert.Less(t, time.Since(at), 10*time.Second)
	})
	t.Run("ports", func(t *testing.T) {
		transport, upgrader, err := spdy.RoundTripperFor(r.config("ann"))
		require.NoError(t, err)
		dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, mustParse(t, r.URL+"/api/v3/jobs/ann/inside/tasks/Worker_1/0/portforward"))
		stop, ready := make(chan struct{}), make(chan struct{})
		f, err := portforward.New(dialer, []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- f.ForwardPorts() }()
		select {
		case <-ready:
		case err := <-done:
			t.Fatalf("it ended: %v", err)
		}
		ports, err := f.GetPorts()
		require.NoError(t, err)
		assert.Equal(t, "hello on 8080", talk(t, fmt.Sprintf("127.0.0.1:%d", ports[0].Local), "hello"))
		close(stop)
		require.NoError(t, <-done)
	})
	t.Run("an upgrade elsewhere is refused", func(t *testing.T) {
		for _, c := range []struct {
			path    string
			headers []string
		}{
			{"/api/v2/jobs", []string{"Connection", "Upgrade", "Upgrade", "websocket"}},
			{inTrain + "cat", []string{"Connection", "Upgrade", "Upgrade", "h2c"}},
			{inTrain + "cat", nil},
			{inTrain + "cat", []string{"Connection", "Upgrade, Authorization", "Upgrade", "websocket"}},
		} {
			a := r.plain(t, "GET", c.path, r.tokens["ann"], c.headers...)
			assert.Equal(t, 400, a, "%s %v", c.path, c.headers)
		}
	})
	assert.Contains(t, r.Printed.String(), `"verb":"enter"`)
	assert.NotContains(t, r.Printed.String(), "two words", "arguments may hold secrets")
	assert.NotContains(t, r.Printed.String(), "two+words")
}

// signal is a writer that reports the first write.
type signal struct{ made chan struct{} }

func (s *signal) Write(p []byte) (int, error) {
	select {
	case <-s.made:
		return 0, errors.New("twice")
	default:
		close(s.made)
	}
	return len(p), nil
}

func TestTheLongestListsOfAPersonAreAnsweredOneAfterTheOther(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	asked, release := make(chan struct{}, 8), make(chan struct{})
	history := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("order") {
			asked <- struct{}{}
			<-release
		}
		http.Error(w, "no server is running", http.StatusServiceUnavailable)
	})
	h := houseOn(t, c, servertest.Options{History: history})
	first := make(chan int, 1)
	go func() { first <- h.as("ann", "GET", "/api/v2/jobs?limit=50000", "").Status }()
	<-asked
	for _, path := range []string{"/api/v2/jobs?limit=1", "/api/v3/jobs"} {
		a := h.as("ann", "GET", path, "")
		assert.Equal(t, 503, a.Status, "%s: %s", path, a.Body)
		assert.Contains(t, a.Body, "many of your lists are being answered")
		assert.Equal(t, "2", a.Header.Get("Retry-After"))
	}
	close(release)
	assert.Equal(t, 200, <-first)
	assert.Equal(t, 200, h.as("ann", "GET", "/api/v2/jobs?limit=1", "").Status)
}

func TestAPersonSendsOneFolderOfCodeAtATime(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	began := make(chan struct{}, 8)
	history := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			began <- struct{}{}
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusCreated)
			return
		}
		http.Error(w, "no server is running", http.StatusServiceUnavailable)
	})
	h := houseOn(t, c, servertest.Options{History: history})
	path := "/api/v3/code/" + strings.Repeat("ab", 32)
	slow, feed := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, h.URL+path, slow)
	require.NoError(t, err)
	r.ContentLength = 2
	r.Header.Set("Authorization", "Bearer "+h.tokens["ann"])
	first := make(chan int, 1)
	go func() {
		status := 0
		if resp, err := h.Client.Do(r); err == nil {
			status = resp.StatusCode
			_ = resp.Body.Close()
		}
		first <- status
	}()
	_, err = io.WriteString(feed, "a")
	require.NoError(t, err)
	<-began
	a := h.as("ann", "PUT", path, "ab")
	assert.Equal(t, 503, a.Status, a.Body)
	assert.NotEmpty(t, a.Header.Get("Retry-After"))
	assert.Equal(t, 201, h.as("abe", "PUT", path, "ab").Status, "another person is not refused")
	_, err = io.WriteString(feed, "b")
	require.NoError(t, err)
	require.NoError(t, feed.Close())
	assert.Equal(t, 201, <-first)
	assert.Equal(t, 201, h.as("ann", "PUT", path, "ab").Status)
}
