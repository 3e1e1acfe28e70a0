package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// BenchmarkJobStart measures the time to the first line of a job, in comparison with a bare pod.
func BenchmarkJobStart(b *testing.B) {
	j := newJobs(b)
	for b.Loop() {
		j.startsSoon(b, 7)
	}
}

// startsSoon measures the time from the start of "job submit" to the first line of the user's program, and the same time for a bare pod with that
// program. Both times come from the logs of the containers, whose clock is this machine's clock. The times are printed and not asserted, because
// they depend on the machine.
func (j *jobs) startsSoon(t testing.TB, rounds int) {
	var jobs, pods []time.Duration
	for i := range rounds {
		name := fmt.Sprintf("start-%d", i)
		j.forget(t, name)
		start := time.Now()
		ok(t, j.job("submit", example(t, "hello"), "--name", name, "--replace")...)
		eventually(t, 2*time.Minute, name+" has printed", func() bool { return strings.Contains(j.log(t, name), "Hello") })
		made := j.podsOf(t, name)
		require.Len(t, made, 1)
		jobs = append(jobs, j.firstLine(t, made[0].Name).Sub(start))
		j.ended(t, name, "succeeded", "")

		bare := bareOf(&made[0])
		manifest, err := json.Marshal(bare)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "pod.json")
		require.NoError(t, os.WriteFile(path, manifest, 0o600))
		start = time.Now()
		out, err := exec.CommandContext(t.Context(), filepath.Join(bundle, "bin", "kubectl"), "--kubeconfig", j.kubeconfig, "create", "-f", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		eventually(t, 2*time.Minute, bare.Name+" has ended", func() bool {
			return strings.Contains(j.kubectl("-n pai-jobs get pod "+bare.Name+" -o jsonpath={.status.phase}"), "Succeeded")
		})
		pods = append(pods, j.firstLine(t, bare.Name).Sub(start))
		j.kubectl("-n pai-jobs delete pod " + bare.Name)
	}
	slices.Sort(jobs)
	slices.Sort(pods)
	overhead := jobs[len(jobs)/2] - pods[len(pods)/2]
	t.Logf("to the first line, median of %d: job %.2f s (%.2f to %.2f), pod %.2f s (%.2f to %.2f), overhead %.2f s", len(jobs),
		jobs[len(jobs)/2].Seconds(), jobs[0].Seconds(), jobs[len(jobs)-1].Seconds(),
		pods[len(pods)/2].Seconds(), pods[0].Seconds(), pods[len(pods)-1].Seconds(), overhead.Seconds())
}

// copiesItsRuntime runs a job as on machines that can't mount the image of the runtime. It also checks that the same job mounts the image on other
// machines.
func (j *jobs) copiesItsRuntime(t *testing.T) {
	deliver := func(how string) {
		j.set("job-controller", map[string]any{"runtimeImage": map[string]any{"delivery": how}})
		j.push()
		j.start(0, "-n", "job-controller")
	}
	t.Cleanup(func() { deliver("auto") })
	for how, inits := range map[string]int{"auto": 0, "init-container": 1} {
		deliver(how)
		j.forget(t, "hello")
		j.submit(t, example(t, "hello"), "--watch", "--timeout", "3m")
		j.ended(t, "hello", "succeeded", "Succeeded")
		assert.Contains(t, j.log(t, "hello"), "Hello ann")
		made := j.podsOf(t, "hello")
		require.Len(t, made, 1)
		assert.Len(t, made[0].Spec.InitContainers, inits, how)
		assert.Equal(t, inits == 0, slices.ContainsFunc(made[0].Spec.Volumes, func(v corev1.Volume) bool { return v.Image != nil }), how)
	}
}

// bareOf returns a pod like the pod of a job, in the form in which a user would write it by hand. It has the same image, resources and scheduler,
// and its command is the program itself.
func bareOf(of *corev1.Pod) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "bare-" + of.Name, Namespace: of.Namespace,
			Labels: map[string]string{v1.LabelVC: of.Labels[v1.LabelVC]}, Annotations: map[string]string{}}, // only the controller may set the account that pays
		Spec: corev1.PodSpec{SchedulerName: of.Spec.SchedulerName, RestartPolicy: corev1.RestartPolicyNever,
			NodeSelector: of.Spec.NodeSelector, Affinity: of.Spec.Affinity, Tolerations: of.Spec.Tolerations},
	}
	const request = "hivedscheduler.microsoft.com/pod-scheduling-spec"
	if spec := of.Annotations[request]; spec != "" {
		p.Annotations[request] = strings.ReplaceAll(spec, "ann~", "bare~")
	}
	app := of.Spec.Containers[0]
	p.Spec.Containers = []corev1.Container{{Name: app.Name, Image: app.Image, ImagePullPolicy: app.ImagePullPolicy, Resources: app.Resources,
		Command: []string{"bash", "-c", "echo Hello"}, Env: []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "none"}}}}
	return p
}

// firstLine returns the time at which a pod has printed its first line.
func (j *jobs) firstLine(t testing.TB, pod string) time.Time {
	t.Helper()
	line, _, _ := strings.Cut(j.kubectl("-n pai-jobs logs --timestamps -c app "+pod), " ")
	at, err := time.Parse(time.RFC3339Nano, line)
	require.NoError(t, err)
	return at
}
