package road

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

func TestAJobGoesFromItsSubmissionToItsLogs(t *testing.T) {
	w := newWorld(t)
	if !t.Run("tasks meet and succeed on the GPUs that the scheduler chose", func(t *testing.T) { meets(t, w) }) {
		return // no other job gets further
	}
	t.Run("a failure is explained by the job runtime's rules", func(t *testing.T) { fails(t, w) })
	t.Run("a person who has signed in follows a job that others don't see", func(t *testing.T) { follows(t, w) })
}

// meets runs a job with two roles. Each task gets its code from the controller. It gets the addresses of its peers from the runtime, which waits for
// all peers.
func meets(t *testing.T, w *world) {
	o := w.operator(t)
	code := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(code, "main.py"), []byte("print()"), 0o600))
	o.does("job", "submit", "testdata/pair.yaml", "--code", code)
	o.does("job", "wait", "pair")
	pods := w.pods(t, "operator", "pair")
	require.ElementsMatch(t, []string{"trainer 0", "trainer 1", "helper 0"}, slices.Collect(maps.Keys(pods)))
	gpus := map[string]bool{}
	for _, p := range pods {
		assert.Contains(t, nodes, p.Spec.NodeName)
		for index := range strings.SplitSeq(p.Annotations[annotation.IsolationKey], ",") {
			gpus[p.Spec.NodeName+":"+index] = true
		}
	}
	assert.Len(t, gpus, 5, "each task has GPUs of its own")
	says := func(task string, knows ...string) string {
		p := pods[task]
		for i := range knows {
			knows[i] = pods[knows[i]].Status.PodIP
		}
		return fmt.Sprintf("%s of 3 at %s has GPUs %s and knows %s", task, p.Status.PodIP, p.Annotations[annotation.IsolationKey], strings.Join(knows, " "))
	}
	logs := strings.Split(strings.TrimSuffix(o.does("job", "logs", "pair", "--no-prefix"), "\n"), "\n")
	assert.ElementsMatch(t, []string{says("trainer 0", "helper 0"), says("trainer 1", "helper 0"), says("helper 0", "trainer 0", "trainer 1")}, logs)
	assert.Equal(t, row{"operator", "pair", "succeeded"}, o.job("pair"))
}

// pods returns the pods of a job. The keys are role and index, separated by a space.
func (w *world) pods(t *testing.T, user, name string) map[string]*corev1.Pod {
	t.Helper()
	list, err := w.Cluster.Client.CoreV1().Pods(kube.JobNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: fv1.LabelFramework + "=" + fv1.ObjectName(user, name)})
	require.NoError(t, err)
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		p := &list.Items[i]
		out[p.Annotations[fv1.AnnotationTaskRole]+" "+p.Labels[fv1.LabelTaskIndex]] = p
	}
	return out
}

// fails runs a job with an exit code that has no meaning. The runtime must find the reason in the job's log.
func fails(t *testing.T, w *world) {
	o := w.operator(t)
	o.does("job", "submit", "testdata/memory.yaml")
	ended := o.run("job", "wait", "memory")
	assert.Equal(t, 226, ended.code, ended.err)
	assert.Equal(t, row{"operator", "memory", "failed"}, o.job("memory"))
	assert.Contains(t, o.does("job", "get", "memory"), "226 container CUDA OOM killed")
	why := o.does("job", "why", "memory")
	assert.Contains(t, why, "the program needs more memory of the GPU than there is (code 226)")
	assert.Regexp(t, `exit code of the program +7\n`, why)
	assert.Regexp(t, `recognised by +RuntimeError: CUDA out of memory`, why)
}

// follows follows the log of a job while the job waits for the test.
func follows(t *testing.T, w *world) {
	ann, bob, o := w.signIn(t, "ann"), w.signIn(t, "bob"), w.operator(t)
	gate, file := w.gate(t)
	ann.does("job", "submit", file)
	log := ann.follow("gate")
	log.next("begun for ann")
	ann.does("job", "wait", "gate", "--for", "running")
	for _, verb := range []string{"get", "logs", "why", "stop"} {
		refused := bob.run("job", verb, "ann/gate")
		assert.Equal(t, 1, refused.code, verb)
		assert.Contains(t, refused.err, `user ann has no job "gate"`, verb)
	}
	_, err := io.WriteString(gate, "open\n")
	require.NoError(t, err)
	log.next("the gate is open")
	log.ends()

	want := row{"ann", "gate", "succeeded"}
	ann.sees([]row{want})
	bob.sees(nil)
	o.sees([]row{want, {"operator", "memory", "failed"}, {"operator", "pair", "succeeded"}})
	assert.Equal(t, want, ann.job("gate"))
	assert.Equal(t, want, o.job("ann/gate"))
	const text = "begun for ann\nthe gate is open\n"
	assert.Equal(t, text, ann.does("job", "logs", "gate"))
	assert.Equal(t, text, o.does("job", "logs", "ann/gate"))
}

// gate creates a pipe from the test to a job, and returns the pipe and the job's file.
func (w *world) gate(t *testing.T) (pipe *os.File, file string) {
	t.Helper()
	name := filepath.Join(w.Gates, "gate")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	pipe, err := os.OpenFile(name, os.O_RDWR, 0) // a pipe that is opened both ways doesn't wait for a reader
	require.NoError(t, err)
	t.Cleanup(func() { _ = pipe.Close() })
	text, err := os.ReadFile("testdata/gate.yaml")
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "gate.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "GATE", name)), 0o600))
	return pipe, file
}
