package ready

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// start is the start time of each test. synctest defines this time.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

const ns = "pai-system"

func metaOf(name string, owner metav1.Object, kind string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: name, Namespace: ns, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(start.Add(-time.Minute)),
		Labels: map[string]string{"app.kubernetes.io/instance": "grafana"},
	}
	if owner != nil {
		yes := true
		m.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes}}
	}
	return m
}

func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metaOf(name, nil, "")}
	n.Namespace = ""
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Message: "Kubelet stopped posting node status.", LastTransitionTime: metav1.NewTime(start)}}
	return n
}

// deployment returns a completely rolled out Deployment and its ReplicaSet.
func deployment(replicas int32) (*appsv1.Deployment, *appsv1.ReplicaSet) {
	d := &appsv1.Deployment{ObjectMeta: metaOf("grafana", nil, "")}
	d.Annotations = map[string]string{revisionAnnotation: "1"}
	d.Spec.Replicas = &replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas}
	r := &appsv1.ReplicaSet{ObjectMeta: metaOf("grafana-1", d, kindDeployment)}
	r.Annotations = map[string]string{revisionAnnotation: "1"}
	return d, r
}

// pod returns a working pod on node a.
func pod(name string, owner metav1.Object, kind string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metaOf(name, owner, kind)}
	p.Spec = corev1.PodSpec{NodeName: "a", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{
		Name: "main", Image: "example.org/grafana:1",
		Resources: corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
		},
	}}}
	p.Status.Phase = corev1.PodRunning
	setCondition(p, corev1.PodScheduled, corev1.ConditionTrue, "")
	setCondition(p, corev1.PodReady, corev1.ConditionTrue, "")
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Image: "example.org/grafana:1", Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start.Add(-time.Minute))}},
	}}
	return p
}

func setCondition(p *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, message string) {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			p.Status.Conditions[i].Status, p.Status.Conditions[i].Message = status, message
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: kind, Status: status, Message: message, LastTransitionTime: metav1.NewTime(start.Add(-30 * time.Second)),
	})
}

// broken marks a pod as not ready, and changes the state of the pod's container.
func broken(p *corev1.Pod, change func(*corev1.ContainerStatus)) *corev1.Pod {
	setCondition(p, corev1.PodReady, corev1.ConditionFalse, "")
	p.Status.ContainerStatuses[0].Ready = false
	change(&p.Status.ContainerStatuses[0])
	return p
}

func waiting(reason, message string) func(*corev1.ContainerStatus) {
	return func(cs *corev1.ContainerStatus) {
		cs.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
}

func ended(code int32, reason string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(start.Add(-10 * time.Second))}
}

func crashLoop(restarts, code int32, reason string) func(*corev1.ContainerStatus) {
	return func(cs *corev1.ContainerStatus) {
		waiting("CrashLoopBackOff", "back-off 20s restarting failed container")(cs)
		cs.RestartCount = restarts
		cs.LastTerminationState.Terminated = ended(code, reason)
	}
}

func unscheduled(p *corev1.Pod, message string) *corev1.Pod {
	p.Spec.NodeName = ""
	p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	setCondition(p, corev1.PodScheduled, corev1.ConditionFalse, message)
	return p
}

func daemonSet(desired int32) (*appsv1.DaemonSet, *appsv1.ControllerRevision) {
	d := &appsv1.DaemonSet{ObjectMeta: metaOf("node-exporter", nil, "")}
	d.Spec.Template.Spec.NodeSelector = map[string]string{"pai-worker": "true"}
	d.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: desired}
	r := &appsv1.ControllerRevision{ObjectMeta: metaOf("node-exporter-2", d, kindDaemonSet), Revision: 2}
	r.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "two"}
	return d, r
}

// daemon returns a pod on a node, with the DaemonSet's newest revision.
func daemon(d *appsv1.DaemonSet, on string) *corev1.Pod {
	p := pod("exporter-"+on, d, kindDaemonSet)
	p.Spec.NodeName = on
	p.Labels[appsv1.ControllerRevisionHashLabelKey] = "two"
	return p
}

func statefulSet(replicas int32) *appsv1.StatefulSet {
	d := &appsv1.StatefulSet{ObjectMeta: metaOf("prometheus", nil, "")}
	d.Spec.Replicas = &replicas
	d.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, UpdateRevision: "two", Replicas: replicas, ReadyReplicas: replicas, UpdatedReplicas: replicas}
	return d
}

func member(d *appsv1.StatefulSet, name, revision string) *corev1.Pod {
	p := pod(name, d, kindStatefulSet)
	p.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	return p
}

func job(conditions ...batchv1.JobCondition) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metaOf("format", nil, "")}
	j.Status.Conditions = conditions
	return j
}

func world(objects ...runtime.Object) *snapshot {
	s := &snapshot{now: start}
	for _, o := range objects {
		s.put(o)
	}
	return s.index()
}

type told struct {
	news  []corev1.Event
	lines []string
}

func (t told) events(context.Context, corev1.ObjectReference) []corev1.Event { return t.news }

func (t told) log(context.Context, *corev1.Pod, string, bool) []string { return t.lines }

func event(reason, message string) corev1.Event {
	return corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: reason, Namespace: ns}, Reason: reason, Message: message}
}
