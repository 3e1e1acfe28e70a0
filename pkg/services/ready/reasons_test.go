package ready

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var theDeployment = []target{{kind: kindDeployment, namespace: ns, name: "grafana"}}

// ofDeployment returns a snapshot with a pod of a Deployment. The function p changes the pod.
func ofDeployment(p func(*corev1.Pod) *corev1.Pod, more ...runtime.Object) *snapshot {
	d, r := deployment(1)
	d.Status.AvailableReplicas = 0
	objects := append([]runtime.Object{d, r, p(pod("grafana-1-x", r, kindReplicaSet))}, more...)
	return world(append(objects, node("a", corev1.ConditionTrue))...)
}

func with(change func(*corev1.ContainerStatus)) func(*corev1.Pod) *corev1.Pod {
	return func(p *corev1.Pod) *corev1.Pod { return broken(p, change) }
}

func TestEachReasonIsTold(t *testing.T) {
	notFound := `rpc error: code = NotFound desc = failed to pull and unpack image "example.org/grafana:1": failed to resolve reference "example.org/grafana:1": example.org/grafana:1: not found`
	gone := `failed to do request: Head "https://example.org/v2/grafana/manifests/1": dial tcp 192.0.2.1:443: i/o timeout`
	const me = "pod/grafana-1-x"
	for name, c := range map[string]struct {
		world *snapshot
		told  told
		want  Problem
		hint  string // a part of it
	}{
		"an image that isn't there": {
			world: ofDeployment(with(waiting("ErrImagePull", notFound))),
			want:  Problem{Object: me, Reason: "ImagePullBackOff", Final: true, Message: "image example.org/grafana:1 can't be pulled: not found"},
			hint:  "paictl image list",
		},
		"an image that isn't there, between two tries": {
			world: ofDeployment(with(waiting("ImagePullBackOff", `Back-off pulling image "example.org/grafana:1": ErrImagePull: `+notFound))),
			want:  Problem{Object: me, Reason: "ImagePullBackOff", Final: true, Message: "image example.org/grafana:1 can't be pulled: not found"},
			hint:  "image",
		},
		"an old kubelet tells the cause in an event": {
			world: ofDeployment(with(waiting("ImagePullBackOff", `Back-off pulling image "example.org/grafana:1"`))),
			told:  told{news: []corev1.Event{event("Failed", "Error: ImagePullBackOff"), event("Failed", `Failed to pull image "example.org/grafana:1": `+notFound)}},
			want:  Problem{Object: me, Reason: "ImagePullBackOff", Final: true, Message: "image example.org/grafana:1 can't be pulled"},
			hint:  "image",
		},
		"a registry that refuses": {
			world: ofDeployment(with(waiting("ErrImagePull", `failed to authorize: failed to fetch oauth token: unexpected status from GET request to "https://example.org/token": 401 Unauthorized`))),
			want:  Problem{Object: me, Reason: "ImagePullBackOff", Final: true, Message: "image example.org/grafana:1 can't be pulled: 401 Unauthorized"},
			hint:  "docker-registry",
		},
		"a registry out of reach may come back": {
			world: ofDeployment(func(p *corev1.Pod) *corev1.Pod {
				p.CreationTimestamp = metav1.NewTime(start.Add(-20 * time.Second))
				return broken(p, waiting("ErrImagePull", gone))
			}),
			want: Problem{Object: me, Reason: "ImagePullBackOff", Message: "image example.org/grafana:1 can't be pulled: dial tcp 192.0.2.1:443: i/o timeout"},
			hint: "can't reach the registry",
		},
		"a registry out of reach for long": {
			world: ofDeployment(with(waiting("ErrImagePull", gone))),
			want:  Problem{Object: me, Reason: "ImagePullBackOff", Final: true, Message: "image example.org/grafana:1 can't be pulled: dial tcp 192.0.2.1:443: i/o timeout"},
			hint:  "can't reach the registry",
		},
		"a name that is none": {
			world: ofDeployment(with(func(cs *corev1.ContainerStatus) { cs.Image = "Grafana:"; waiting("InvalidImageName", "x")(cs) })),
			want:  Problem{Object: me, Reason: "InvalidImageName", Final: true, Message: `container main: "Grafana:" is not an image name`},
			hint:  "image.repository",
		},
		"an image that may not be pulled": {
			world: ofDeployment(with(waiting("ErrImageNeverPull", "x"))),
			want:  Problem{Object: me, Reason: "ErrImageNeverPull", Final: true, Message: "image example.org/grafana:1 is not on node a, and pullPolicy Never forbids pulling it"},
			hint:  "paictl cluster up",
		},
		"a missing secret": {
			world: ofDeployment(with(waiting("CreateContainerConfigError", `secret "grafana-credentials" not found`))),
			want:  Problem{Object: me, Reason: "CreateContainerConfigError", Final: true, Message: `container main can't be set up: secret "grafana-credentials" not found`},
			hint:  "get secrets,configmaps",
		},
		"a command that isn't there": {
			world: ofDeployment(with(waiting("RunContainerError", `exec: "/nope": no such file or directory`))),
			want:  Problem{Object: me, Reason: "RunContainerError", Final: true, Message: `container main can't be started: exec: "/nope": no such file or directory`},
			hint:  "command",
		},
		"a limit too low to start at all": {
			world: ofDeployment(with(waiting("RunContainerError", "container init was OOM-killed (memory limit too low?): unknown"))),
			want:  Problem{Object: me, Reason: "OOMKilled", Final: true, Message: "container main was killed at its memory limit of 64Mi"},
			hint:  "resources.limits.memory in the section of grafana",
		},
		"a crash may be one of its kind": {
			world: ofDeployment(with(crashLoop(1, 1, "Error"))),
			told:  told{lines: []string{"boom"}},
			want:  Problem{Object: me, Reason: "CrashLoopBackOff", Message: "container main ended twice with exit code 1", Log: []string{"boom"}},
			hint:  "paictl service logs -n grafana",
		},
		"crashes over and over": {
			world: ofDeployment(with(crashLoop(2, 127, "Error"))),
			want:  Problem{Object: me, Reason: "CrashLoopBackOff", Final: true, Message: "container main ended 3 times with exit code 127 (the command can't be run)"},
			hint:  "log",
		},
		"a crash, while it runs again": {
			world: ofDeployment(with(func(cs *corev1.ContainerStatus) {
				cs.RestartCount, cs.LastTerminationState.Terminated = 2, ended(2, "Error")
			})),
			want: Problem{Object: me, Reason: "CrashLoopBackOff", Message: "container main ended twice with exit code 2"},
			hint: "log",
		},
		"a server that ends by itself": {
			world: ofDeployment(with(crashLoop(3, 0, "Completed"))),
			want:  Problem{Object: me, Reason: "CrashLoopBackOff", Final: true, Message: "container main ended 4 times with exit code 0 although it should keep running"},
			hint:  "log",
		},
		"out of memory": {
			world: ofDeployment(with(crashLoop(1, 137, "OOMKilled"))),
			want:  Problem{Object: me, Reason: "OOMKilled", Final: true, Message: "container main was killed at its memory limit of 64Mi, twice"},
			hint:  "resources.limits.memory",
		},
		"out of memory for the first time": {
			world: ofDeployment(with(func(cs *corev1.ContainerStatus) {
				cs.State = corev1.ContainerState{Terminated: ended(137, "OOMKilled")}
			})),
			want: Problem{Object: me, Reason: "OOMKilled", Message: "container main was killed at its memory limit of 64Mi, once"},
			hint: "resources.limits.memory",
		},
		"a liveness probe that fails": {
			world: ofDeployment(with(crashLoop(2, 137, "Error"))),
			told:  told{news: []corev1.Event{event("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500")}},
			want:  Problem{Object: me, Reason: "ProbeFailed", Final: true, Message: "container main was restarted 3 times: Liveness probe failed: HTTP probe failed with statuscode: 500"},
			hint:  "log",
		},
		"a readiness probe that fails": {
			world: ofDeployment(with(func(*corev1.ContainerStatus) {})),
			told:  told{news: []corev1.Event{event("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")}},
			want:  Problem{Object: me, Reason: "ProbeFailed", Message: "container main runs, but isn't ready: Readiness probe failed: HTTP probe failed with statuscode: 503"},
			hint:  "paictl service logs -n grafana",
		},
		"an init container that fails": {
			world: ofDeployment(func(p *corev1.Pod) *corev1.Pod {
				p.Spec.InitContainers = []corev1.Container{{Name: "prepare"}}
				p.Status.Phase = corev1.PodPending
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "prepare"}}
				crashLoop(2, 1, "Error")(&p.Status.InitContainerStatuses[0])
				return broken(p, waiting("PodInitializing", ""))
			}),
			want: Problem{Object: me, Reason: "CrashLoopBackOff", Final: true, Message: "container prepare ended 3 times with exit code 1"},
			hint: "log",
		},
		"a volume that can't be mounted": {
			world: ofDeployment(func(p *corev1.Pod) *corev1.Pod {
				p.Status.Phase = corev1.PodPending
				return broken(p, waiting("ContainerCreating", ""))
			}),
			told: told{news: []corev1.Event{event("FailedMount", "MountVolume.SetUp failed for volume \"data\" : mount failed:\n exit status 32")}},
			want: Problem{Object: me, Reason: "FailedMount", Message: `failed mount: MountVolume.SetUp failed for volume "data" : mount failed: exit status 32`},
			hint: "node a",
		},
		"a secret to mount that is missing": {
			world: ofDeployment(func(p *corev1.Pod) *corev1.Pod {
				p.Status.Phase = corev1.PodPending
				return broken(p, waiting("ContainerCreating", ""))
			}),
			told: told{news: []corev1.Event{event("FailedMount", `MountVolume.SetUp failed for volume "c" : secret "x" not found`)}},
			want: Problem{Object: me, Reason: "FailedMount", Final: true, Message: `failed mount: MountVolume.SetUp failed for volume "c" : secret "x" not found`},
			hint: "isn't started",
		},
		"an evicted pod": {
			world: ofDeployment(func(p *corev1.Pod) *corev1.Pod {
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: ephemeral-storage."}
				return p
			}),
			want: Problem{Object: me, Reason: "Evicted", Message: "the node ended it: The node was low on resource: ephemeral-storage."},
			hint: "free disk",
		},
		"a node that is off": {
			world: func() *snapshot {
				d, r := deployment(1)
				d.Status.AvailableReplicas = 0
				return world(d, r, broken(pod("p", r, kindReplicaSet), func(*corev1.ContainerStatus) {}), node("a", corev1.ConditionUnknown))
			}(),
			want: Problem{Object: "node/a", Reason: "NodeNotReady", Message: "the node is not ready since 2000-01-01 00:00:00 UTC: Kubelet stopped posting node status."},
			hint: "paictl node list",
		},
		"a quota": {
			world: func() *snapshot {
				d, r := deployment(1)
				d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 0, 0, 0
				d.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
					Message: `pods "grafana-1-x" is forbidden: exceeded quota: small, requested: memory=64Mi, used: memory=0, limited: memory=32Mi`,
				}}
				return world(d, r)
			}(),
			want: Problem{Object: "deployment/grafana", Reason: "QuotaExceeded", Final: true, Message: "no pod can be created: exceeded quota: small, requested: memory=64Mi, used: memory=0, limited: memory=32Mi"},
			hint: "get resourcequota",
		},
		"a rule of the namespace": {
			world: func() *snapshot {
				d, r := deployment(1)
				d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 0, 0, 0
				return world(d, r)
			}(),
			told: told{news: []corev1.Event{event("FailedCreate", `Error creating: pods "x" is forbidden: violates PodSecurity "baseline:latest": hostNetwork`)}},
			want: Problem{Object: "deployment/grafana", Reason: "AdmissionDenied", Final: true, Message: `no pod can be created: pods "x" is forbidden: violates PodSecurity "baseline:latest": hostNetwork`},
			hint: "pod-security.kubernetes.io/enforce",
		},
		"a rollout that stalls without a word": {
			world: func() *snapshot {
				d, r := deployment(1)
				d.Status.AvailableReplicas = 0
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "timed out progressing"}}
				return world(d, r)
			}(),
			want: Problem{Object: "deployment/grafana", Reason: "Stalled", Final: true, Message: "timed out progressing"},
			hint: "describe deployment grafana",
		},
		"a workload that was deleted": {
			world: world(),
			want:  Problem{Object: "deployment/grafana", Reason: "Missing", Final: true, Message: "it is missing"},
			hint:  "paictl service start",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := stateOf(t.Context(), theDeployment, c.world, c.told)
			assert.False(t, got.Ready)
			if assert.Len(t, got.Problems, 1) {
				assert.Contains(t, got.Problems[0].Hint, c.hint)
				got.Problems[0].Hint = ""
				assert.Equal(t, c.want, got.Problems[0])
			}
		})
	}
}

func TestAKubeletThatHasntHeardOfASecretYetIsNoProblem(t *testing.T) {
	world := ofDeployment(func(p *corev1.Pod) *corev1.Pod {
		p.Status.Phase = corev1.PodPending
		return broken(p, waiting("ContainerCreating", ""))
	})
	news := event("FailedMount", `MountVolume.SetUp failed for volume "token" : object "pai-system"/"log-manager-token" not registered`)
	got, _ := stateOf(t.Context(), theDeployment, world, told{news: []corev1.Event{news}})
	assert.False(t, got.Ready)
	assert.Empty(t, got.Problems)
}

func TestWhyNoNodeTakesAPod(t *testing.T) {
	ending := pod("old", nil, "")
	ending.DeletionTimestamp = &metav1.Time{Time: start}
	for name, c := range map[string]struct {
		message, want, hint string
		final               bool
		more                []runtime.Object
	}{
		"a label that no node has": {
			message: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
			want:    "it fits on no node; of 3: 3 without the label pai-worker=true or pai-storage=true", hint: "layout.yaml", final: true,
		},
		"too little of a resource": {
			message: "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
			want:    "it fits on no node; of 1: 1 without enough free cpu (it requests 500m)", hint: "resources.requests", final: true,
		},
		"too little, but pods are just ending": {
			message: "0/1 nodes are available: 1 Insufficient cpu.", more: []runtime.Object{ending},
			want: "it fits on no node; of 1: 1 without enough free cpu (it requests 500m)", hint: "resources.requests",
		},
		"taints and labels": {
			message: "0/3 nodes are available: 1 node(s) had untolerated taint(s) {node-role.kubernetes.io/control-plane: }, 2 node(s) didn't match Pod's node affinity/selector.",
			want:    "it fits on no node; of 3: 1 with the taint node-role.kubernetes.io/control-plane; 2 without the label pai-worker=true or pai-storage=true", hint: "layout.yaml", final: true,
		},
		"nodes that are away": {
			message: "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
			want:    "it fits on no node; of 1: 1 not ready", hint: "paictl node list",
		},
		"a cordoned node": {
			message: "0/1 nodes are available: 1 node(s) were unschedulable.", want: "it fits on no node; of 1: 1 cordoned", hint: "uncordon", final: true,
		},
		"a volume that isn't bound": {
			message: "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
			want:    "it fits on no node; of 1: pod has unbound immediate PersistentVolumeClaims. not found", hint: "paictl service start -n storage", final: true,
		},
		"a volume elsewhere": {
			message: "0/2 nodes are available: 1 node(s) had volume node affinity conflict, 1 node(s) didn't find available persistent volumes to bind.",
			want:    "it fits on no node; of 2: 1 had volume node affinity conflict; 1 didn't find available persistent volumes to bind", hint: "describe pvc data",
		},
		"words of another scheduler": {message: "try later", want: "it fits on no node: try later", final: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := ofDeployment(func(p *corev1.Pod) *corev1.Pod {
				in := func(key string) corev1.NodeSelectorTerm {
					return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}}}
				}
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{in("pai-worker"), in("pai-storage")},
				}}}
				p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
				return unscheduled(p, c.message)
			}, c.more...)
			got, _ := stateOf(t.Context(), theDeployment, s, told{})
			if assert.Len(t, got.Problems, 1) {
				p := got.Problems[0]
				assert.Equal(t, "Unschedulable", p.Reason)
				assert.Equal(t, c.want, p.Message)
				assert.Contains(t, p.Hint, c.hint)
				assert.Equal(t, c.final, p.Final)
			}
		})
	}
}

func TestTextFromElsewhereIsOneCleanLine(t *testing.T) {
	assert.Equal(t, "red text over two lines", clean("\x1b[31mred\x1b[0m text\r\nover\ttwo\x00 lines\x1b]0;title\x07", 100))
	assert.Equal(t, "abcd…", clean("abcdefgh", 5))
	long := `level=ERROR msg="Error loading rule file patterns" ` + strings.Repeat("x", 300) + ` err="2:5: unclosed left parenthesis"`
	assert.Equal(t, []string{long}, lastLines(long, 2), "the error stands at the end of the line")
	assert.Equal(t, []string{"three", "  four"}, lastLines("one\ntwo\n\n\x1b[1mthree\x1b[0m\n  four\n\n", 2))
}

func TestManifestsNameWhatIsWaitedFor(t *testing.T) {
	got, err := parseTargets(ns, `---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {spec: x}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
---
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: PersistentVolume, metadata: {name: v}}
  - {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: e, namespace: other}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {ttlSecondsAfterFinished: 60}
---
apiVersion: example.org/v1
kind: Deployment
metadata: {name: foreign}
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: w}
spec: text
---
apiVersion: v1
kind: ServiceAccount
metadata: [documents of kinds that are not waited for aren't parsed
---
apiVersion: apps/v1
kind: "StatefulSet"
metadata: {name: quoted}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s, annotations: {note: "a line
kind: ConfigMap
of a text"}}
`)
	assert.NoError(t, err)
	assert.Equal(t, []target{
		{kind: kindDeployment, namespace: ns, name: "d"}, {kind: kindVolume, name: "v"},
		{kind: kindDaemonSet, namespace: "other", name: "e"}, {kind: kindJob, namespace: ns, name: "j", passing: true},
		{kind: kindStatefulSet, namespace: ns, name: "quoted"}, {kind: kindStatefulSet, namespace: ns, name: "s"},
	}, got)
	_, err = parseTargets(ns, "a: [")
	assert.Error(t, err)
}

// Programs use the reason. The text for users contains the reason only once, in the message.
func TestTheTextOfAProblemSaysItsReasonOnce(t *testing.T) {
	s := &snapshot{now: time.Unix(100, 0)}
	p, cs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "grafana-0"}}, corev1.ContainerStatus{Name: "main", Image: "example.org/grafana:1"}
	pull := s.pull(p, cs, "failed to resolve reference \"example.org/grafana:1\": example.org/grafana:1: not found")
	assert.Equal(t, "pod/grafana-0: image example.org/grafana:1 can't be pulled: not found", pull.Text())
	assert.Equal(t, "pod/grafana-0: image example.org/grafana:1 can't be pulled: not found (ImagePullBackOff)", pull.TextWithTerm())
	cs.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImageInspectError", Message: "broken"}
	var inspect Problem
	require.True(t, waitingProblem(p, cs, &inspect))
	assert.Equal(t, "pod/grafana-0: container main: image inspect error: broken", inspect.Text())
}
