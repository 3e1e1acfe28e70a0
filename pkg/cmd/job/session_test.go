package job_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

// A session is a job whose task only waits. This test runs the commands of the session on this machine.
func TestASessionIsAJobThatEndsWithItsCommand(t *testing.T) {
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	beat := filepath.Join(t.TempDir(), "beat")
	require.NoError(t, os.WriteFile(beat, nil, 0o600))
	kubelet := &jobtest.Kubelet{Exec: func(p *jobtest.Process) *metav1.Status {
		args := slices.Clone(p.Args)
		if i := slices.Index(args, "--"); i >= 0 { // the runtime's exec
			args = args[i+1:]
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "/dev/shm/.paictl-session", beat)
		}
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, p.Stdout, p.Stderr
		cmd.WaitDelay = time.Second
		_ = cmd.Run() // its exit code says it
		return jobtest.Exited(cmd.ProcessState.ExitCode())
	}}
	h, err := jobtest.Handler(cluster.Config, nil)
	require.NoError(t, err)
	env := append(os.Environ(), "KUBECONFIG="+jobtest.Kubeconfig(t, kubelet.Before(h)), "PAICTL_USER=bob")

	run := exec.CommandContext(t.Context(), "paictl", "job", "run", "-i", "busybox", "--name", "inside", "-e", "A=b", "--", "sh", "-c", `read line; echo "$line $A"; exit 7`)
	run.Env, run.Stdin = env, strings.NewReader("typed\n")
	var stdout, stderr bytes.Buffer
	run.Stdout, run.Stderr = &stdout, &stderr
	require.NoError(t, run.Start())
	startJob(t, cluster, "inside")
	require.Error(t, run.Wait())
	assert.Equal(t, 7, run.ProcessState.ExitCode(), stderr.String())
	assert.Equal(t, "typed b\n", stdout.String())
	assert.Contains(t, stderr.String(), "in main[0] on ")
	assert.Contains(t, stderr.String(), "bob/inside is stopping")
	assert.Equal(t, v1.ExecutionStop, waitForJob(t, cluster, "inside").Spec.ExecutionType)
	said, err := os.ReadFile(beat)
	require.NoError(t, err)
	assert.Regexp(t, `^\d+\n$`, string(said), "the task was told that paictl is there")

	for name, signal := range map[string]os.Signal{"hangup": syscall.SIGHUP, "interrupt": os.Interrupt} {
		cmd := exec.CommandContext(t.Context(), "paictl", "job", "run", "-i", "busybox", "--name", name, "--", "true")
		cmd.Env = env
		var text bytes.Buffer
		cmd.Stderr = &text
		require.NoError(t, cmd.Start())
		waitForJob(t, cluster, name)
		require.NoError(t, cmd.Process.Signal(signal))
		require.Error(t, cmd.Wait())
		assert.Equal(t, 130, cmd.ProcessState.ExitCode(), text.String())
		assert.Equal(t, v1.ExecutionStop, waitForJob(t, cluster, name).Spec.ExecutionType, text.String())
		assert.NotContains(t, text.String(), "continues")
	}

	// A terminal is closed while a user works in the task. A program receives a signal only from its controlling terminal, and even this
	// terminal is gone before the signal arrives.
	for name, controls := range map[string]bool{"closed": true, "vanished": false} {
		closed := exec.CommandContext(t.Context(), "paictl", "job", "run", "-it", "busybox", "--name", name, "--", "cat")
		closed.Env = env
		master, slave, err := pty.Open()
		require.NoError(t, err)
		closed.Stdin, closed.Stdout, closed.Stderr = slave, slave, slave
		closed.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: controls}
		require.NoError(t, closed.Start())
		require.NoError(t, slave.Close())
		startJob(t, cluster, name)
		var screen strings.Builder
		for !strings.Contains(screen.String(), "the job ends with this session") {
			b := make([]byte, 1024)
			n, err := master.Read(b)
			require.NoError(t, err, screen.String())
			screen.Write(b[:n])
		}
		require.NoError(t, master.Close())
		require.Error(t, closed.Wait())
		assert.Equal(t, 130, closed.ProcessState.ExitCode())
		assert.Equal(t, v1.ExecutionStop, waitForJob(t, cluster, name).Spec.ExecutionType)
	}

	again := exec.CommandContext(t.Context(), "paictl", "job", "run", "-i", "busybox", "--name", "hangup", "--", "true")
	again.Env = env
	out, err := again.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "bob/hangup already exists\n  -> open a shell in it: paictl job shell hangup")
}

// waitForJob waits until the user bob has a job with the given name.
func waitForJob(t *testing.T, c *kube.Cluster, name string) *v1.Framework {
	t.Helper()
	client, err := job.New(c)
	require.NoError(t, err)
	var f *v1.Framework
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		f, err = client.Frameworks.Get(ctx, v1.ObjectName("bob", name))
		return err == nil, nil
	}))
	return f
}

// startJob creates the pod of the only task of a job, and lets it run.
func startJob(t *testing.T, c *kube.Cluster, name string) {
	t.Helper()
	f := waitForJob(t, c, name)
	pods := c.Client.CoreV1().Pods(kube.JobNamespace)
	p, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: v1.PodName(f.Name, "main", 0), Labels: map[string]string{
		v1.LabelFramework: f.Name, v1.LabelTaskRole: "main", v1.LabelTaskIndex: "0"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "busybox"}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	_, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	now := metav1.Now()
	jobtest.SetStatus(t, c, f.Name, &v1.FrameworkStatus{StartTime: now, RunTime: &now, TransitionTime: now, State: v1.AttemptRunning, AttemptStatus: v1.FrameworkAttemptStatus{
		StartTime: now, RunTime: &now, TaskRoleStatuses: []*v1.TaskRoleStatus{{Name: "main", TaskStatuses: []*v1.TaskStatus{}, Counts: v1.TaskCounts{Total: 1, Running: 1}}}}})
}

func TestInitTakesAnImageThatTheMachinesHold(t *testing.T) {
	cluster := kubetest.Start(t)
	const ours = "docker.io/openpai/examples-python:3"
	for name, images := range map[string][]string{"gpu-1": {"busybox:1", ours, "registry.k8s.io/pause:3"}, "gpu-2": {ours, "registry.k8s.io/pause:3"}, "master": {}} {
		n, err := cluster.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		if len(images) > 0 {
			n.Labels = map[string]string{"pai-worker": "true"}
			n, err = cluster.Client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		for _, i := range images {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{i + "@sha256:0", i}})
		}
		_, err = cluster.Client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	kubeconfig := jobtest.Front(t, cluster, nil)
	out, err := exec.CommandContext(t.Context(), "paictl", "job", "init", "--kubeconfig", kubeconfig).Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "uri: "+ours+"\n")
	assert.Contains(t, string(out), "# All machines of the cluster have this image.\n")
	out, err = exec.CommandContext(t.Context(), "paictl", "__complete", "job", "run", "--kubeconfig", kubeconfig, "").Output()
	require.NoError(t, err)
	assert.Equal(t, ours+"\nregistry.k8s.io/pause:3\n:4\n", string(out))
	out, err = exec.CommandContext(t.Context(), "paictl", "job", "init", "--kubeconfig", kubeconfig, "--image", "own:1").Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "uri: own:1\n")
	assert.NotContains(t, string(out), "hold")
}
