package job

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// hostileName is the name of a job with control sequences. Users have to type it to show the job.
const hostileName = "raw\x1b[2J\x1b]0;name\a\nterm   mallory   running"

// hostileLog is the output of the task of this job. It contains colors, and sequences that set the title, write to the clipboard and move the
// cursor.
const hostileLog = "\x1b[31mred\x1b[0m 10%\r20%\n\x1b]52;c;ZXZpbA==\a\x1b]0;pwn\a\x1b[2J\x1b[1;1Hdone\n"

// withHostileJob returns a cluster with a job whose texts try to harm users who view the job.
func withHostileJob(t *testing.T, user string) (kubeconfig string) {
	t.Helper()
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	h, err := jobtest.Handler(cluster.Config, nil)
	require.NoError(t, err)
	kubeconfig = jobtest.Kubeconfig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/log") {
			fmt.Fprint(w, hostileLog)
			return
		}
		h.ServeHTTP(w, r)
	}))
	c, err := job.Open(kube.Options{Kubeconfig: kubeconfig})
	require.NoError(t, err)
	object := v1.ObjectName(user, hostileName)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationTaskRole: "ro\x1b[2Jle\nx"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "i\x1b[5m\nmage"}}}}
	_, err = c.Frameworks.Create(t.Context(), &v1.Framework{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: object, Labels: map[string]string{v1.LabelUser: user}, Annotations: map[string]string{
			v1.AnnotationJobName: hostileName, v1.AnnotationPriority: "\x1b[5m\nx", v1.AnnotationGPUs: "-999999999999999999999", v1.AnnotationConfig: "name: \x1b[2Jx\n"}},
		Spec: v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, TaskRoles: []v1.TaskRole{{Name: "a", TaskNumber: 1, Task: v1.Task{Pod: template}}}}}, false)
	require.NoError(t, err)
	pods := cluster.Client.CoreV1().Pods(kube.JobNamespace)
	p, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: object + "-a-0", Labels: map[string]string{
		v1.LabelFramework: object, v1.LabelTaskRole: "a", v1.LabelTaskIndex: "0"}},
		Spec: corev1.PodSpec{AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "app", Image: "i"}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "\x1b[2Jno\nimage"}}}}
	_, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = cluster.Client.CoreV1().Events(kube.JobNamespace).Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "hostile-" + user}, Type: "Warning\x1b[5m",
		Reason: "Bad\x1b[2J", Message: "line\none\x1b]0;x\a", InvolvedObject: corev1.ObjectReference{Kind: "Framework", Name: object, Namespace: kube.JobNamespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return kubeconfig
}

func TestJobsOfOthersForgeNothingOnTheScreen(t *testing.T) {
	kubeconfig := withHostileJob(t, "mallory")
	for _, args := range [][]string{
		{"list", "--all-users"}, {"list", "-A", "-o", "wide"}, {"list", "-A", "-o", "name"}, {"list", "-A", "-o", "json"}, {"list", "-A", "-o", "yaml"},
		{"get", hostileName, "--user", "mallory"}, {"get", hostileName, "--user", "mallory", "-o", "json"}, {"get", hostileName, "--user", "mallory", "-o", "name"},
		{"why", hostileName, "--user", "mallory"}, {"events", hostileName, "--user", "mallory"}, {"top", hostileName, "--user", "mallory"},
		{"logs", hostileName, "--user", "mallory", "--role", "none\x1b[2J"}, {"exec", hostileName, "--user", "mallory", "--", "true"},
		{"delete", hostileName, "--user", "mallory"},
	} {
		t.Run(strings.Join(args[:1], " ")+" "+args[len(args)-1][:2], func(t *testing.T) {
			out, errOut, err := paictl(t, nil, append(args, "--kubeconfig", kubeconfig)...)
			var said bytes.Buffer
			cmdutil.PrintError(&said, err)
			for _, r := range out + errOut + said.String() {
				if r != '\n' && unicode.IsControl(r) {
					t.Fatalf("%q reaches the terminal: %q", r, out+errOut+said.String())
				}
			}
			for line := range strings.Lines(out) {
				assert.False(t, strings.HasPrefix(line, "term"), "a forged row: %s", out)
			}
		})
	}
	out, _, err := paictl(t, nil, "list", "--user", "mallory", "-o", "wide", "--kubeconfig", kubeconfig)
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(out, "\n"), "a header and a row:\n%s", out)
	assert.NotContains(t, out, "922337")
	assert.Regexp(t, ` \? `, out, "a number of GPUs that is none")
	out, _, err = paictl(t, nil, "list", "--user", "mallory", "-o", "name", "--kubeconfig", kubeconfig)
	require.NoError(t, err)
	assert.Len(t, strings.Fields(out), 1, "one word, as xargs sees it")
}

func TestLogsCommandATerminalOnlyWhereAskedTo(t *testing.T) {
	kubeconfig := withHostileJob(t, "trudy")
	for name, c := range map[string]struct {
		terminal bool
		args     []string
		want     string
	}{
		"on a terminal":      {true, nil, "\x1b[31mred\x1b[0m 10%\r20%\ndone\n\x1b[0m"},
		"raw, on a terminal": {true, []string{"--raw"}, hostileLog},
		"into a pipe":        {false, nil, hostileLog},
	} {
		t.Run(name, func(t *testing.T) {
			f := cmdutil.New("v0.0.0-test")
			streams, _, stdout, _ := iostreams.Test()
			streams.SetTerminal(c.terminal)
			f.IO, f.Getenv = streams, func(string) string { return "" }
			cmd := NewCmdJob(f)
			cmd.SetArgs(append([]string{"logs", hostileName, "--user", "trudy", "--kubeconfig", kubeconfig}, c.args...))
			require.NoError(t, cmd.ExecuteContext(t.Context()))
			assert.Equal(t, c.want, stdout.String())
		})
	}
}

func TestWhatATaskLeftBehindForgesNothing(t *testing.T) {
	var out bytes.Buffer
	writeWhy(&out, &job.Why{Job: "mallory/x", State: "failed", Sentence: "ro\x1b[2Jle\nx failed", Remedy: []string{"a\nb"},
		Facts: []job.Fact{{What: "wh\tat", Text: "t\nex\x1b[5mt"}}, Log: []string{"\x1b[2J\x1b]0;pwn\a evil", "  indented\nand more"}})
	assert.Equal(t, "mallory/x (failed): ro[2Jle x failed\n  -> a b\n\nwh at   t ex[5mt\n\nits log:\n  [2J]0;pwn evil\n    indented\n  and more\n", out.String())
}
