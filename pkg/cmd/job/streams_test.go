package job_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/runtime/code"
	"github.com/openpai/paictl/pkg/runtime/transfer"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// TestScriptsWithTasks runs scripts on jobs with simulated containers, whose programs work in a folder of this machine.
func TestScriptsWithTasks(t *testing.T) {
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	makeJob(t, cluster, "runs", "app")
	makeJob(t, cluster, "bare", "bare")
	makeJob(t, cluster, "idle", "")
	history := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if jobtest.TakesRecords(w, r) {
			return
		}
		if r.URL.Path == "/v1/jobs/"+v1.ObjectName("bob", "over") {
			fmt.Fprint(w, `{"user":"bob","name":"over","state":"Succeeded","attempts":[]}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"NotFound","message":"no such job"}`)
	})
	h, err := jobtest.Handler(cluster.Config, jobtest.Services{api.Service: history})
	require.NoError(t, err)
	front := func(t *testing.T) http.Handler {
		return (&jobtest.Kubelet{Exec: (&container{t.TempDir()}).exec}).Before(h)
	}
	t.Run("by a kubeconfig", func(t *testing.T) {
		cmdtest.RunIn(t, "testdata/streams", map[string]string{"KUBECONFIG": jobtest.Kubeconfig(t, front(t)), "PAICTL_USER": "bob"})
	})
	t.Run("signed in", func(t *testing.T) {
		d, err := people.Open(cluster.Config, people.Options{})
		require.NoError(t, err)
		require.NoError(t, d.Prepare(t.Context()))
		srv := httptest.NewServer(front(t))
		t.Cleanup(srv.Close)
		s := servertest.Start(t, cluster, servertest.Options{API: func(config *rest.Config) { *config = rest.Config{Host: srv.URL} }})
		s.Ended("bob", "default", "over", time.Now().Add(-time.Hour))
		home := t.TempDir()
		s.Person("bob")
		s.Login(home, "bob")
		cmdtest.RunIn(t, "testdata/streams", map[string]string{"XDG_CONFIG_HOME": home, "PAICTL_SERVER": "bob"})
	})
}

// makeJob creates a job of bob with two tasks. The first task runs in a container, and the second task has finished. If image is empty, no task
// has begun.
func makeJob(t *testing.T, c *kube.Cluster, name, image string) {
	t.Helper()
	ctx, object := t.Context(), v1.ObjectName("bob", name)
	f := &v1.Framework{TypeMeta: metav1.TypeMeta{APIVersion: v1.Resource.GroupVersion().String(), Kind: "Framework"},
		ObjectMeta: metav1.ObjectMeta{Name: object, Labels: map[string]string{v1.LabelUser: "bob"}, Annotations: map[string]string{v1.AnnotationJobName: name, v1.AnnotationRuntime: "test"}},
		Spec: v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, TaskRoles: []v1.TaskRole{{Name: "worker", TaskNumber: 2,
			Task: v1.Task{Pod: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "i"}}}}}}}}}
	text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f)
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	_, err = client.Resource(v1.Resource).Namespace(kube.JobNamespace).Create(ctx, &unstructured.Unstructured{Object: text}, metav1.CreateOptions{})
	require.NoError(t, err)
	if image == "" {
		return
	}
	for index, state := range []corev1.ContainerState{{Running: &corev1.ContainerStateRunning{}}, {Terminated: &corev1.ContainerStateTerminated{}}} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: v1.PodName(object, "worker", int32(index)), Labels: map[string]string{
			v1.LabelFramework: object, v1.LabelTaskRole: "worker", v1.LabelTaskIndex: fmt.Sprint(index)}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}}
		p, err := c.Client.CoreV1().Pods(kube.JobNamespace).Create(ctx, p, metav1.CreateOptions{})
		require.NoError(t, err)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: state}}
		_, err = c.Client.CoreV1().Pods(kube.JobNamespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
}

// container simulates the container of the task runs-0. Its files are in the folder root.
type container struct{ root string }

func (c *container) exec(p *jobtest.Process) *metav1.Status {
	if slices.Contains(p.Args, "bare") {
		return jobtest.NotStarted(`OCI runtime exec failed: unable to start container process: exec: "` + job.RuntimePath + `": stat ` + job.RuntimePath + `: no such file or directory`)
	}
	args := p.Args[3:] // runtime exec --
	at := func(i int) string { return filepath.Join(c.root, args[i]) }
	if args[0] != p.Args[0] {
		fmt.Fprintln(p.Stdout, args)
		return jobtest.Exited(7)
	}
	err := error(nil)
	switch args = args[1:]; {
	case args[0] == "cp-kind" && args[1] == "/endless":
		for err == nil {
			_, err = p.Stdout.Write(make([]byte, 1<<16))
		}
	case args[0] == "cp-kind" && evil[args[1]] != nil && strings.HasSuffix(args[1], ".pt"):
		fmt.Fprintln(p.Stdout, transfer.File)
		fmt.Fprint(p.Stderr, "\x1b]0;pwned\a\x1b[2Jdone\n")
	case args[0] == "cp-kind" && evil[args[1]] != nil:
		fmt.Fprintln(p.Stdout, transfer.Folder)
	case args[0] == "cp-kind":
		var kind transfer.Kind
		kind, err = transfer.KindOf(at(1))
		fmt.Fprintln(p.Stdout, kind)
	case args[0] == "cp-out" && evil[args[1]] != nil:
		err = send(p.Stdout, evil[args[1]])
	case args[0] == "cp-out":
		_, err = transfer.Pack(context.Background(), p.Stdout, at(1), args[2], func(name, why string) { fmt.Fprintf(p.Stderr, "left out: %s (%s)\n", name, why) })
	case args[0] == "cp-in":
		err = code.Unpack(context.Background(), p.Stdin, at(1))
	}
	if err != nil {
		fmt.Fprintln(p.Stderr, "pai-runtime:", err)
		return jobtest.Exited(1)
	}
	return jobtest.Exited(0)
}

// evil maps a requested path to the archive that a malicious task sends for it. The archives try to write outside the destination.
var evil = map[string][]tar.Header{
	"/up":       {{Name: "../escaped", Typeflag: tar.TypeReg}},
	"/deep":     {{Name: "deep/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "deep/../../escaped", Typeflag: tar.TypeReg}},
	"/absolute": {{Name: "/tmp/escaped", Typeflag: tar.TypeReg}},
	"/link":     {{Name: "link", Linkname: "..", Typeflag: tar.TypeSymlink}, {Name: "link/escaped", Typeflag: tar.TypeReg}},
	"/inner":    {{Name: "in", Linkname: ".", Typeflag: tar.TypeSymlink}, {Name: "in/escaped", Typeflag: tar.TypeReg}},
	"/hard":     {{Name: "hard", Linkname: "../outside", Typeflag: tar.TypeLink}},
	"/device":   {{Name: "device", Typeflag: tar.TypeBlock}},
	"/beside":   {{Name: "beside/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: ".bashrc", Typeflag: tar.TypeReg}},
	"/model.pt": {{Name: "model.pt", Typeflag: tar.TypeReg, Mode: 0o644}, {Name: ".bashrc", Typeflag: tar.TypeReg}},
}

// send sends the given entries, and then much more data, like a task that tries to fill the disk.
func send(w io.Writer, headers []tar.Header) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for i := range headers {
		if err := t.WriteHeader(&headers[i]); err != nil {
			return err
		}
	}
	for i := range 100 {
		if err := t.WriteHeader(&tar.Header{Name: fmt.Sprintf("after-%d", i), Typeflag: tar.TypeReg, Size: 1 << 16, Mode: 0o644}); err != nil {
			return err
		}
		if _, err := t.Write(make([]byte, 1<<16)); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}
