package render

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

var update = flag.Bool("update", false, "rewrite golden files")

const head = `protocolVersion: 2
name: train
type: job
prerequisites:
  - {name: img, type: dockerimage, uri: "ubuntu:24.04"}
taskRoles:
`

// job parses a job file that consists of head, the given roles, and the given rest.
func job(t *testing.T, roles, rest string) *protocol.Job {
	t.Helper()
	j, findings := protocol.Parse("job.yaml", []byte(head+roles+rest))
	require.NoError(t, findings.Err())
	return j
}

// worker returns a role with n tasks.
func worker(name string, n, gpu int) string {
	return fmt.Sprintf("  %s: {instances: %d, dockerImage: img, resourcePerInstance: {cpu: 4, memoryMB: 1024, gpu: %d}, commands: [a]}\n", name, n, gpu)
}

// facts returns a cluster with two types of GPUs and two virtual clusters.
func facts() Cluster {
	return Cluster{
		RuntimeImage: "registry.example.com/pai-runtime:v1", PullSecret: "pull", SchedulerName: "pai-scheduler", NodeLabels: map[string]string{"pai-worker": "true"},
		VirtualClusters: map[string]VirtualCluster{
			"default": {Cells: map[string]int{"A100": 16, "V100": 8}, PerUser: 20},
			"small":   {Cells: map[string]int{"V100": 4}, Pinned: []string{"rack-1"}, Users: map[string]int{"bob": 2}},
		},
		SKUs:     map[string]SKU{"A100": {GPU: 1, MilliCPU: 16000, MemoryMB: 128 << 10, PerNode: 8}, "V100": {GPU: 1, MilliCPU: 4000, MemoryMB: 32 << 10, PerNode: 4}},
		Storages: map[string]Storage{"team": {}, "home": {PerUser: true, Default: true}, "models": {ReadOnly: true, Claim: "models-claim"}},
	}
}

func options() Options { return Options{User: "alice", Namespace: "pai-jobs", Cluster: facts()} }

func mustRender(t *testing.T, j *protocol.Job, o Options) *Objects {
	t.Helper()
	out, findings := Render(j, o)
	require.NoError(t, findings.Err())
	require.NotNil(t, out)
	return out
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "run the test with -update if this is right")
}

func write(t *testing.T, o *Objects) []byte {
	t.Helper()
	b, err := yaml.Marshal(o.Framework)
	require.NoError(t, err)
	for _, s := range o.Secrets {
		s.StringData = map[string]string{}
		for k, v := range s.Data {
			s.StringData[k] = string(v)
		}
		s.Data = nil
		text, err := yaml.Marshal(s)
		require.NoError(t, err)
		b = append(append(b, "---\n"...), text...)
	}
	return b
}

func TestThePublishedExample(t *testing.T) {
	text, err := os.ReadFile("../testdata/published/example.yaml")
	require.NoError(t, err)
	j, findings := protocol.Parse("example.yaml", text)
	require.NoError(t, findings.Err())
	golden(t, "example.yaml", write(t, mustRender(t, j, options())))
}

func TestAJobThatAsksForEverything(t *testing.T) {
	j := job(t, worker("Main_Role", 1, 8)+worker("ps", 1, 0), `secrets: {token: "s3cret&<>"}
extras:
  gracePeriodSec: 400
  maxDurationSec: 3600
  jobStatusChangeNotification: {failed: true, succeeded: true}
  hostNetwork: true
  storages: [{name: models}, {name: home, mountPath: /home/me}, {name: team}]
  hivedScheduler:
    jobPriorityClass: prod
    lazyPreemptionEnable: true
    taskRoles: {Main_Role: {skuType: A100}}
  com.microsoft.pai.runtimeplugin: [{plugin: cmd, parameters: {preCommands: ["login <% $secrets.token %>"]}}]
`)
	o := options()
	o.Group, o.Code = "vision", &spec.Code{URL: "http://job-controller/v1/code/abc", SHA256: "abc", Size: 7, Dir: "/code"}
	golden(t, "everything.yaml", write(t, mustRender(t, j, o)))
}

func TestAJobWithoutTheSchedulerOfGPUs(t *testing.T) {
	o := options()
	o.Cluster = Cluster{RuntimeImage: "pai-runtime"}
	golden(t, "plain.yaml", write(t, mustRender(t, job(t, worker("main", 1, 2), ""), o)))
}

func TestATaskMayWriteToItsDiskWhatItAsksFor(t *testing.T) {
	role := strings.Replace(worker("main", 1, 0), "commands:", "extraContainerOptions: {diskMB: 2048}, commands:", 1)
	for _, p := range mustRender(t, job(t, role, ""), options()).Framework.Spec.TaskRoles {
		for _, c := range append(p.Task.Pod.Spec.InitContainers, p.Task.Pod.Spec.Containers...) {
			assert.Equal(t, "2Gi", c.Resources.Limits.StorageEphemeral().String(), c.Name)
			assert.Contains(t, c.Resources.Requests, corev1.ResourceEphemeralStorage, "else Kubernetes takes the limit")
			assert.Zero(t, c.Resources.Requests.StorageEphemeral().Value(), c.Name)
		}
	}
	for _, p := range mustRender(t, job(t, worker("main", 1, 0), ""), options()).Framework.Spec.TaskRoles {
		assert.NotContains(t, p.Task.Pod.Spec.Containers[0].Resources.Limits, corev1.ResourceEphemeralStorage, "the namespace's default counts")
	}
}

// requests returns, for each role, the request in its pods' annotation as the scheduler reads it.
func requests(t *testing.T, f *v1.Framework) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range f.Spec.TaskRoles {
		text := r.Task.Pod.Annotations[annotation.SpecKey]
		got, err := annotation.ParseRequest(text, "pai-jobs/"+f.Name)
		require.NoError(t, err, text)
		out[r.Task.Pod.Annotations[v1.AnnotationTaskRole]] = fmt.Sprintf("%s %d %s%s %s set %d of %v", got.VirtualCluster, got.Priority, got.LeafType, got.PinnedCell, got.Gang, got.Set, got.Root.Pods)
	}
	return out
}

func TestTheSchedulerReadsWhatIsAskedOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		roles, rest string
		want        map[string]string
	}{
		"one gang": {worker("a", 2, 8) + worker("b", 3, 0), "", map[string]string{
			"a": "default 10  alice~train/default set 0 of [{2  8} {3  1}]", "b": "default 10  alice~train/default set 1 of [{2  8} {3  1}]"}},
		"equal sizes are summed up": {worker("a", 2, 1) + worker("b", 3, 0), "", map[string]string{
			"a": "default 10  alice~train/default set 0 of [{5  1}]", "b": "default 10  alice~train/default set 0 of [{5  1}]"}},
		"no gang": {worker("a", 2, 2), "extras: {gangAllocation: false}\n", map[string]string{
			"a": "default 10  pai-jobs/" + v1.ObjectName("alice", "train") + " set 0 of [{1  2}]"}},
		"a type": {worker("a", 2, 4), "extras: {hivedScheduler: {jobPriorityClass: crit, taskRoles: {a: {skuType: A100}}}}\n", map[string]string{
			"a": "default 120 A100 alice~train/default set 0 of [{2  4}]"}},
		"two types are two groups": {worker("a", 2, 4) + worker("b", 1, 1) + worker("c", 1, 0), "extras: {hivedScheduler: {taskRoles: {a: {skuType: A100}, b: {skuType: V100}}}}\n", map[string]string{
			"a": "default 10 A100 alice~train/default-A100 set 0 of [{2  4}]", "b": "default 10 V100 alice~train/default-V100 set 0 of [{1  1}]",
			"c": "default 10  alice~train/default set 0 of [{1  1}]"}},
		"named groups": {worker("a", 2, 4) + worker("b", 1, 1) + worker("c", 2, 2), "extras: {hivedScheduler: {taskRoles: {a: {affinityGroupName: x}, b: {affinityGroupName: x}}}}\n", map[string]string{
			"a": "default 10  alice~train/x set 0 of [{2  4} {1  1}]", "b": "default 10  alice~train/x set 1 of [{2  4} {1  1}]",
			"c": "default 10  pai-jobs/" + v1.ObjectName("alice", "train") + " set 0 of [{1  2}]"}},
		"a pinned cell": {worker("a", 1, 1), "defaults: {virtualCluster: small}\nextras: {hivedScheduler: {taskRoles: {a: {pinnedCellId: rack-1}}}}\n", map[string]string{
			"a": "small 10 rack-1 alice~train/default set 0 of [{1  1}]"}},
		"opportunistic": {worker("a", 100, 1), "defaults: {virtualCluster: small}\nextras: {hivedScheduler: {jobPriorityClass: oppo}}\n", map[string]string{
			"a": "small -1  alice~train/default set 0 of [{100  1}]"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := mustRender(t, job(t, c.roles, c.rest), options())
			assert.Equal(t, c.want, requests(t, out.Framework))
		})
	}
}

func TestCellsGiveProcessorsAndMemoryToo(t *testing.T) {
	for _, c := range []struct {
		cpu, memory, gpu int
		sku              string
		want             int
	}{
		{1, 1, 0, "", 1}, {1, 1, 3, "", 3}, {5, 1, 1, "", 2}, {1, 32<<10 + 1, 1, "", 2}, {16, 128 << 10, 1, "A100", 1}, {17, 1, 1, "A100", 2}, {0, 0, 0, "", 1},
	} {
		roles := fmt.Sprintf("  a: {dockerImage: img, resourcePerInstance: {cpu: %d, memoryMB: %d, gpu: %d}, commands: [a]}\n", c.cpu, c.memory, c.gpu)
		rest := ""
		if c.sku != "" {
			rest = "extras: {hivedScheduler: {taskRoles: {a: {skuType: " + c.sku + "}}}}\n"
		}
		out := mustRender(t, job(t, roles, rest), options())
		text := out.Framework.Spec.TaskRoles[0].Task.Pod.Annotations[annotation.SpecKey]
		assert.Contains(t, text, fmt.Sprintf("leafCellNumber: %d\n", c.want), "%+v", c)
	}
}

func TestWhatTheClusterLacksIsSaidWithItsPlace(t *testing.T) {
	vc := func(name string) string { return "defaults: {virtualCluster: " + name + "}\n" }
	sku := func(fields string) string { return "extras: {hivedScheduler: {taskRoles: {a: {" + fields + "}}}}\n" }
	for name, c := range map[string]struct {
		roles, rest, want, remedy string
	}{
		"an unknown virtual cluster": {worker("a", 1, 1), vc("smal"), `8:28: defaults.virtualCluster: the cluster has no virtual cluster "smal" [job/unknown-virtual-cluster]`, `did you mean "small"?`},
		"no such virtual cluster":    {worker("a", 1, 1), vc("xyz"), `8:28: defaults.virtualCluster: the cluster has no virtual cluster "xyz" [job/unknown-virtual-cluster]`, "write one of these into defaults.virtualCluster: default, small"},
		"a name for no label":        {worker("a", 1, 1), vc("'a b'"), `8:28: defaults.virtualCluster: "a b" is not the name of a virtual cluster [job/name]`, "write letters, digits, - _ and ., at most 63 characters"},
		"an unknown type":            {worker("a", 1, 1), sku("skuType: A10"), `8:52: extras.hivedScheduler.taskRoles.a.skuType: the cluster has no GPUs of the type "A10" [job/unknown-sku]`, `did you mean "A100"?`},
		"a type of others":           {worker("a", 1, 1), vc("small") + sku("skuType: A100"), `9:52: extras.hivedScheduler.taskRoles.a.skuType: the virtual cluster small owns no A100 [job/unknown-sku]`, "it owns V100; choose another virtual cluster, or jobPriorityClass: oppo, which may use the GPUs of others"},
		"a pinned cell":              {worker("a", 1, 1), vc("small") + sku("pinnedCellId: rack-2"), `9:57: extras.hivedScheduler.taskRoles.a.pinnedCellId: the virtual cluster small has no pinned cell "rack-2" [job/unknown-pinned-cell]`, `did you mean "rack-1"?`},
		"more than there is":         {worker("a", 13, 2), "", `6:1: taskRoles: the job needs 26 GPUs at the same time, but the virtual cluster default owns 24 [job/quota]`, "request less, choose another virtual cluster in defaults.virtualCluster, or use jobPriorityClass: oppo"},
		"more of a type":             {worker("a", 3, 8), sku("skuType: A100"), `6:1: taskRoles: the job needs 24 GPUs of the type A100 at the same time, but the virtual cluster default owns 16 [job/quota]`, "request less, choose another virtual cluster in defaults.virtualCluster, or use jobPriorityClass: oppo"},
		"more than a user may":       {worker("a", 21, 1), "", `6:1: taskRoles: the job needs 21 GPUs at the same time, but user alice may have 20 in the virtual cluster default [job/quota]`, "request less, choose another virtual cluster in defaults.virtualCluster, or use jobPriorityClass: oppo"},
		"a task beyond any machine":  {worker("a", 1, 9), "", `7:39: taskRoles.a.resourcePerInstance: a task of a needs the machine's share of 9 GPUs, but no machine has more than 8 (each has cpu 4 and 32768 MB) [job/too-large]`, "request less per task, and more instances"},
		"an unknown storage":         {worker("a", 1, 1), "extras: {storages: [{name: tean}]}\n", `8:21: extras.storages[0]: the cluster has no storage "tean" [job/unknown-storage]`, `did you mean "team"?`},
	} {
		t.Run(name, func(t *testing.T) {
			out, findings := Render(job(t, c.roles, c.rest), options())
			require.Len(t, findings, 1)
			assert.Nil(t, out)
			assert.Equal(t, c.want, strings.TrimPrefix(findings[0].String(), "job.yaml:"))
			assert.Equal(t, c.remedy, findings[0].Remedy)
		})
	}
}

func TestWhatIsNotKnownIsNotChecked(t *testing.T) {
	o := options()
	o.Cluster.VirtualClusters, o.Cluster.SKUs, o.Cluster.Storages = nil, nil, nil
	mustRender(t, job(t, worker("a", 5000, 64), "defaults: {virtualCluster: any}\nextras: {storages: [{name: x}], hivedScheduler: {taskRoles: {a: {skuType: y}}}}\n"), o)
}

func TestTasksThatNeedNotRunTogetherNeedNotFitTogether(t *testing.T) {
	mustRender(t, job(t, worker("a", 100, 1), "extras: {gangAllocation: false}\n"), options())
	_, findings := Render(job(t, worker("a", 100, 5), "defaults: {virtualCluster: small}\nextras: {gangAllocation: false}\n"), options())
	require.Error(t, findings.Err())
}

func TestAClusterWithoutGPUs(t *testing.T) {
	o := options()
	o.Cluster.SKUs = map[string]SKU{}
	out := mustRender(t, job(t, worker("a", 1, 0), ""), o)
	pod := out.Framework.Spec.TaskRoles[0].Task.Pod
	assert.Empty(t, pod.Spec.SchedulerName)
	assert.NotContains(t, pod.Annotations, annotation.SpecKey)
	_, findings := Render(job(t, worker("a", 1, 1), ""), o)
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0].Message, "no GPUs")
}

func TestNamesThatKubernetesCantKeepAreRefused(t *testing.T) {
	for _, user := range []string{"", "a b", "alice@example.com", "-x", strings.Repeat("x", 64), "é"} {
		o := options()
		o.User = user
		_, findings := Render(job(t, worker("a", 1, 0), ""), o)
		require.Len(t, findings, 1, user)
		assert.Equal(t, "job/user", findings[0].Rule)
	}
	o := options()
	o.Group = "a b"
	_, findings := Render(job(t, worker("a", 1, 0), ""), o)
	require.Len(t, findings, 1)
}

func TestAPodHasNoPrivilegeAndNoSecret(t *testing.T) {
	j := job(t, worker("a", 2, 1), "secrets: {p: hunter2}\nparameters: {q: <% $secrets.p %>}\nextras: {storages: [{name: team}]}\n")
	out := mustRender(t, j, options())
	text, err := json.Marshal(out.Framework)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "hunter2")
	spec := out.Framework.Spec.TaskRoles[0].Task.Pod.Spec
	assert.False(t, spec.HostNetwork)
	assert.False(t, *spec.AutomountServiceAccountToken)
	assert.Empty(t, spec.HostAliases)
	for _, v := range spec.Volumes {
		assert.Nil(t, v.HostPath, v.Name)
	}
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		assert.Nil(t, c.SecurityContext)
	}
}

func TestOnlyTasksThatHaveOthersGetAToken(t *testing.T) {
	tokens := func(j *protocol.Job) int {
		n := 0
		for _, v := range mustRender(t, j, options()).Framework.Spec.TaskRoles[0].Task.Pod.Spec.Volumes {
			if v.Projected != nil {
				n++
			}
		}
		return n
	}
	assert.Zero(t, tokens(job(t, worker("a", 1, 0), "")))
	assert.Equal(t, 1, tokens(job(t, worker("a", 2, 0), "")))
	assert.Equal(t, 1, tokens(job(t, worker("a", 1, 0)+worker("b", 1, 0), "")))
}

func TestTheCheckpointFolderIsOnStorageThatCanBeWritten(t *testing.T) {
	folder := func(extras string) string {
		out := mustRender(t, job(t, worker("a", 1, 0), "extras: {"+extras+"}\n"), options())
		return decode(t, out).CheckpointDir
	}
	assert.Empty(t, folder("x: 1"))
	assert.Equal(t, "/data/.checkpoints/alice/train", folder("storages: [{name: models}, {name: team, mountPath: /data}]"))
	assert.Equal(t, "/mnt/home/.checkpoints/alice/train", folder("storages: []"))
	assert.Equal(t, "/ck", folder("checkpointDir: /ck"))
}

func decode(t *testing.T, o *Objects) *spec.Spec {
	t.Helper()
	s, err := spec.Decode(o.Secrets[0].Data[v1.SpecKey])
	require.NoError(t, err)
	return s
}

func TestTheRuntimeReadsTheSpec(t *testing.T) {
	j := job(t, strings.Replace(worker("Main_1", 2, 8), "commands: [a]", "exec: [sh, -c, 'echo <% $secrets.p %>']", 1)+worker("main1", 1, 0), "secrets: {p: \"&<x>\"}\n")
	s := decode(t, mustRender(t, j, options()))
	assert.Equal(t, []string{"main1", "main12"}, []string{s.Roles[0].Object, s.Roles[1].Object})
	assert.Equal(t, []string{"sh", "-c", "echo &<x>"}, s.Roles[0].Exec)
	assert.Empty(t, s.Roles[0].Command)
	assert.Equal(t, 0, s.Role("main1"))
	assert.Equal(t, v1.ObjectName("alice", "train")+".pai-jobs.svc.cluster.local", s.Domain)
}

func TestTasksLogInToEachOtherByAKeyOfTheirJob(t *testing.T) {
	keys := func(parameters string) []string {
		rest := "extras: {com.microsoft.pai.runtimeplugin: [{plugin: ssh" + parameters + "}]}\n"
		s := decode(t, mustRender(t, job(t, worker("a", 1, 0)+worker("b", 1, 0), rest), options()))
		var out []string
		for _, r := range s.Roles {
			var p struct {
				JobKey struct {
					PrivateKey string `json:"privateKey"`
				} `json:"jobKey"`
			}
			if len(r.Plugins[0].Parameters) > 0 {
				require.NoError(t, json.Unmarshal(r.Plugins[0].Parameters, &p))
			}
			out = append(out, p.JobKey.PrivateKey)
		}
		return out
	}
	got := keys(", parameters: {jobssh: true}")
	assert.Equal(t, got[0], got[1])
	_, err := ssh.ParsePrivateKey([]byte(got[0]))
	require.NoError(t, err)
	assert.NotEqual(t, got, keys(", parameters: {jobssh: true}"), "every submission has its own")
	assert.NotEmpty(t, keys("")[0])
	assert.Empty(t, keys(", parameters: {jobssh: false}")[0])
	assert.Empty(t, keys(`, parameters: {jobssh: "false"}`)[0])
}

func TestNothingToDoIsAProgram(t *testing.T) {
	j, findings := protocol.Parse("job.yaml", []byte(head+strings.Replace(worker("a", 1, 0), "[a]", "['']", 1)))
	require.Len(t, findings.Warnings(), 1)
	assert.Equal(t, ":", decode(t, mustRender(t, j, options())).Roles[0].Command)
}

func TestRetryPolicies(t *testing.T) {
	roles := strings.Replace(worker("a", 2, 1), "instances: 2", "instances: 2, taskRetryCount: 5", 1)
	gang := mustRender(t, job(t, roles, "jobRetryCount: 3\n"), options()).Framework
	assert.Equal(t, v1.RetryPolicy{FancyRetryPolicy: true, MaxRetryCount: 3}, gang.Spec.RetryPolicy)
	assert.Equal(t, v1.RetryPolicy{}, gang.Spec.TaskRoles[0].Task.RetryPolicy)
	single := mustRender(t, job(t, roles, "extras: {gangAllocation: false}\n"), options()).Framework
	assert.Equal(t, v1.RetryPolicy{FancyRetryPolicy: true, MaxRetryCount: 5}, single.Spec.TaskRoles[0].Task.RetryPolicy)
	assert.Equal(t, int64(600), *single.Spec.TaskRoles[0].Task.PodGracefulDeletionTimeoutSec)
	long := mustRender(t, job(t, roles, "extras: {gracePeriodSec: 1000}\n"), options()).Framework
	assert.Greater(t, *long.Spec.TaskRoles[0].Task.PodGracefulDeletionTimeoutSec, *long.Spec.TaskRoles[0].Task.Pod.Spec.TerminationGracePeriodSeconds)
}

func TestLoginsOfOneRegistryThatDifferAreKeptApart(t *testing.T) {
	image := func(name, uri, user string) string {
		return fmt.Sprintf("  - {name: %s, type: dockerimage, uri: %q, auth: {username: %s, password: p}}\n", name, uri, user)
	}
	text := strings.Replace(head, "taskRoles:", image("one", "team/a:1", "u")+image("two", "b@sha256:"+strings.Repeat("0", 64), "v")+image("unused", "c", "w")+"taskRoles:", 1) +
		strings.Replace(worker("a", 1, 0), "img", "one", 1) + strings.Replace(worker("b", 1, 0), "img", "two", 1) + worker("c", 1, 0)
	j, findings := protocol.Parse("job.yaml", []byte(text))
	require.NoError(t, findings.Err())
	out := mustRender(t, j, options())
	require.Len(t, out.Secrets, 2)
	assert.Equal(t, corev1.SecretTypeDockerConfigJson, out.Secrets[1].Type)
	assert.JSONEq(t, `{"auths": {"index.docker.io/team/a": {"username": "u", "password": "p", "auth": "dTpw"},
		"index.docker.io/library/b": {"username": "v", "password": "p", "auth": "djpw"}}}`, string(out.Secrets[1].Data[corev1.DockerConfigJsonKey]))
	names := func(i int) int { return len(out.Framework.Spec.TaskRoles[i].Task.Pod.Spec.ImagePullSecrets) }
	assert.Equal(t, []int{2, 2, 1}, []int{names(0), names(1), names(2)})
	for uri, want := range map[string]string{"r.example.com:5000/a/b:1": "r.example.com:5000/a/b", "localhost/a": "localhost/a", "a/b": "index.docker.io/a/b", "a:1": "index.docker.io/library/a"} {
		assert.Equal(t, want, repository(uri))
	}
}

func TestAJobThatKubernetesCouldNotKeepIsRefused(t *testing.T) {
	roles := ""
	for i := range 480 {
		roles += fmt.Sprintf("  r%d: {dockerImage: img, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: %d}, commands: [a]}\n", i, i%9)
	}
	o := options()
	o.Cluster.VirtualClusters, o.Cluster.SKUs = nil, nil
	_, findings := Render(job(t, roles, ""), o)
	require.Error(t, findings.Err())
	assert.Equal(t, "job/size", findings[0].Rule)
}

// FuzzRender checks that each valid job can be rendered, or is rejected with findings that contain no secrets. It also checks that the scheduler
// and the runtime can read the rendered objects.
func FuzzRender(f *testing.F) {
	example, err := os.ReadFile("../testdata/published/example.yaml")
	require.NoError(f, err)
	f.Add(example, "alice")
	f.Add([]byte(head+worker("a", 2, 1)+"secrets: {p: x}\nextras: {storages: [], hivedScheduler: {taskRoles: {a: {skuType: A100}}}}\n"), "bob")
	f.Fuzz(func(t *testing.T, data []byte, user string) {
		j, _ := protocol.Parse("job.yaml", data)
		if j == nil {
			return
		}
		o := options()
		o.User = user
		for _, o.Cluster = range []Cluster{facts(), {SchedulerName: "pai-scheduler"}, {}} {
			out, findings := Render(j, o)
			for _, one := range findings {
				require.Positive(t, one.Line)
				require.Equal(t, strictyaml.Error, one.Severity)
			}
			if out == nil {
				require.NotEmpty(t, findings)
				continue
			}
			_, err := spec.Decode(out.Secrets[0].Data[v1.SpecKey])
			require.NoError(t, err)
			if o.Cluster.SchedulerName != "" {
				requests(t, out.Framework)
			}
		}
	})
}

func TestATaskMayHaveAPartOfAProcessor(t *testing.T) {
	out := mustRender(t, job(t, strings.Replace(worker("main", 1, 0), "cpu: ", "cpu: 0.", 1), ""), options())
	cpu := out.Framework.Spec.TaskRoles[0].Task.Pod.Spec.Containers[0].Resources.Limits["cpu"]
	assert.Positive(t, cpu.MilliValue())
	assert.Less(t, cpu.MilliValue(), int64(1000))
}
