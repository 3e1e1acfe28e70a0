package controller

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	amount "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

func jobOf(tasks int32, template corev1.PodTemplateSpec) (*v1.Framework, *v1.FrameworkStatus, *v1.TaskStatus) {
	f := &v1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: "f", Namespace: "jobs", UID: "fuid", Annotations: map[string]string{v1.AnnotationRuntime: v1.RuntimeV1}},
		Spec:       v1.FrameworkSpec{TaskRoles: []v1.TaskRole{{Name: "worker", TaskNumber: tasks, Task: v1.Task{Pod: template}}}},
	}
	uid := "cmuid"
	t := &v1.TaskStatus{Index: 1, InstanceUID: "tuid", AttemptStatus: v1.TaskAttemptStatus{ID: 2, PodName: "f-worker-1"}}
	st := &v1.FrameworkStatus{AttemptStatus: v1.FrameworkAttemptStatus{ID: 3, ConfigMapName: "f-attempt", ConfigMapUID: &uid,
		TaskRoleStatuses: []*v1.TaskRoleStatus{{Name: "worker", InstanceUID: "ruid", TaskStatuses: []*v1.TaskStatus{{}, t}}}}}
	return f, st, t
}

func app(c corev1.Container) corev1.PodTemplateSpec {
	c.Name = "app"
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
}

func TestAPodIsToldWhoItIs(t *testing.T) {
	f, st, task := jobOf(2, app(corev1.Container{Env: []corev1.EnvVar{{Name: "FC_TASK_INDEX", Value: "mine"}, {Name: "A", Value: "$(FC_POD_NAME)"}}}))
	p, err := makePod(f, st, "worker", task, nil)
	require.NoError(t, err)
	env := map[string]string{}
	for _, e := range p.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	assert.Equal(t, "3_cmuid", env["FC_FRAMEWORK_ATTEMPT_INSTANCE_UID"])
	assert.Equal(t, "2", env["FC_TASK_ATTEMPT_ID"])
	assert.Equal(t, "ruid", env["FC_TASKROLE_UID"])
	assert.Equal(t, "mine", env["FC_TASK_INDEX"], "a template's own variables stay")
	assert.Equal(t, "A", p.Spec.Containers[0].Env[len(p.Spec.Containers[0].Env)-1].Name, "they may refer to the others")
	assert.Equal(t, "cmuid", string(p.OwnerReferences[0].UID))
	assert.Equal(t, corev1.TerminationMessageFallbackToLogsOnError, p.Spec.Containers[0].TerminationMessagePolicy)
	assert.Empty(t, f.Spec.TaskRoles[0].Task.Pod.Labels, "the template itself isn't changed")
}

// The pod templates in the cache are packed, and a template may be packed twice.
func TestAPodHasTheTokenOfItsCode(t *testing.T) {
	f, _, _ := jobOf(1, app(corev1.Container{}))
	r := &reconciler{o: Options{PeersKey: func() []byte { return []byte("key") }}}
	c := &corev1.Container{Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}
	require.NoError(t, r.openCode(f, c))
	assert.Len(t, c.Env, 1, "the job has no code")
	f.Annotations[v1.AnnotationCode] = "5ac3"
	require.NoError(t, r.openCode(f, c))
	require.Len(t, c.Env, 2)
	assert.Equal(t, spec.CodeTokenVariable, c.Env[0].Name)
	uid, ok := peers.CheckToken([]byte("key"), peers.OfCode("5ac3"), c.Env[0].Value)
	assert.True(t, ok)
	assert.Equal(t, "fuid", uid)
	_, ok = peers.CheckToken([]byte("key"), "f", c.Env[0].Value)
	assert.False(t, ok, "it opens no addresses")

	r.o.PeersKey = func() []byte { return nil }
	require.Error(t, r.openCode(f, c), "the pod waits until the key is known")
}

func TestAPodOfAPackedTemplateIsTheSame(t *testing.T) {
	template := app(corev1.Container{
		Image: "i:1", Env: []corev1.EnvVar{{Name: "AT", Value: "{{FC_TASK_INDEX}} of <all> & more"}},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: amount.MustParse("2"), "nvidia.com/gpu": amount.MustParse("1")}},
	})
	template.Annotations = map[string]string{v1.AnnotationTaskRole: "Worker", "mine": "a"}
	f, st, task := jobOf(2, template)
	want, err := makePod(f, st, "worker", task, nil)
	require.NoError(t, err)
	summary := api.Summary(f)
	for range 2 {
		o, err := slimFramework(f)
		require.NoError(t, err)
		f = o.(*v1.Framework)
		pod := f.Spec.TaskRoles[0].Task.Pod
		assert.Empty(t, pod.Spec.Containers[0].Env)
		assert.Equal(t, map[string]string{v1.AnnotationTaskRole: "Worker"}, pod.Annotations)
		have, err := makePod(f.DeepCopy(), st, "worker", task, nil)
		require.NoError(t, err)
		wanted, err := json.Marshal(want)
		require.NoError(t, err)
		got, err := json.Marshal(have)
		require.NoError(t, err)
		assert.JSONEq(t, string(wanted), string(got))
		assert.Equal(t, int32(1), gpusOf(&corev1.Pod{}, templateOf(f, "worker")))
	}
	assert.Equal(t, summary, api.Summary(f))
}

func TestWhoPaysForAPodIsWhatTheFrameworkSays(t *testing.T) {
	template := app(corev1.Container{})
	template.Labels = map[string]string{v1.LabelUser: "bob", v1.LabelGroup: "rich", "mine": "a"}
	f, st, task := jobOf(1, template)
	f.Labels = map[string]string{v1.LabelUser: "ann"}
	p, err := makePod(f, st, "worker", task, nil)
	require.NoError(t, err)
	assert.Equal(t, "ann", p.Labels[v1.LabelUser])
	assert.NotContains(t, p.Labels, v1.LabelGroup)
	assert.Equal(t, "a", p.Labels["mine"])
}

// The host name appears in the prompt of a shell.
func TestATaskHasAHostNameAlsoWhereItIsTheOnlyOne(t *testing.T) {
	f, st, task := jobOf(1, app(corev1.Container{}))
	p, err := makePod(f, st, "worker", task, nil)
	require.NoError(t, err)
	assert.Equal(t, "worker-"+p.Labels[v1.LabelTaskIndex], p.Spec.Hostname)
	assert.Empty(t, p.Spec.Subdomain)
}

func TestAFrameworkOfOthersGetsPlainPods(t *testing.T) {
	f, st, task := jobOf(2, app(corev1.Container{}))
	f.Annotations = nil
	p, err := makePod(f, st, "worker", task, nil)
	require.NoError(t, err)
	assert.Empty(t, p.Spec.Hostname)
	assert.Empty(t, p.Spec.Subdomain)
}

func TestAPodStaysAwayFromNodesThatFailedItsJob(t *testing.T) {
	template := app(corev1.Container{})
	template.Annotations = map[string]string{annotation.SpecKey: "virtualCluster: default\nleafCellNumber: 1\n"}
	template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{}, {MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpExists}}}}}}}
	f, st, task := jobOf(1, template)
	p, err := makePod(f, st, "worker", task, []string{"bad"})
	require.NoError(t, err)
	for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		assert.Contains(t, term.MatchExpressions, corev1.NodeSelectorRequirement{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"bad"}},
			"one term is enough to match, so each must say it")
	}
	request, err := annotation.ParseRequest(p.Annotations[annotation.SpecKey], "jobs/f-worker-1")
	require.NoError(t, err)
	assert.True(t, request.OnlySuggested, "the scheduler of GPUs has to ask which nodes are left")
	assert.Equal(t, "default", request.VirtualCluster)
}

func TestWhichAnswersOfTheAPIEndATask(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err  error
		code int32
	}{
		"invalid":         {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), machine.CodePodCreationPermanent},
		"too large":       {apierrors.NewRequestEntityTooLargeError("3 MiB"), machine.CodePodCreationPermanent},
		"forbidden":       {apierrors.NewForbidden(pods, "p", errors.New("by a policy")), machine.CodePodCreationUnknown},
		"above a maximum": {apierrors.NewForbidden(pods, "p", errors.New("maximum cpu usage per Container is 1, but limit is 2")), machine.CodePodCreationPermanent},
		"a bad request":   {apierrors.NewBadRequest("no"), machine.CodePodCreationUnknown},
		"a used up quota": {apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: pods")), 0},
		"a time-out":      {apierrors.NewTimeoutError("slow", 1), 0},
		"none":            {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			code, refused := refusal(test.err)
			assert.Equal(t, test.code, code)
			assert.Equal(t, test.code != 0, refused)
		})
	}
}

func TestOutcomesComeFromTheRules(t *testing.T) {
	m, err := newMetrics(nil)
	require.NoError(t, err)
	b := newRuleBook(m)
	failed := func(name string, code int32, reason string) machine.Outcome {
		return b.Failed(&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, ContainerStatuses: []corev1.ContainerStatus{
			{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}}}})
	}
	o := failed("app", 251, "")
	assert.Equal(t, "JobGangAllocationTimeout", o.Phrase)
	assert.Equal(t, []v1.CompletionTypeAttribute{v1.Transient, v1.Conflict}, o.Attributes)
	assert.False(t, o.NodeFault)
	o = failed("app", 0, "Evicted")
	assert.Equal(t, int32(-1000), o.Code)
	assert.True(t, o.NodeFault)
	assert.False(t, b.Code(-1003).NodeFault, "to make room for another is no fault")
	o = failed("app", 77, "")
	assert.Equal(t, int32(77), o.Code)
	assert.Empty(t, o.Attributes)
	set, findings := rules.Parse("rules", []byte("- code: 77\n  phrase: Seventy\n  behavior: PERMANENT\n  reaction: NEVER_RETRY\n"))
	require.NoError(t, findings.Err())
	b.use(set)
	o = failed("app", 77, "")
	assert.Equal(t, "Seventy", o.Phrase)
	assert.Equal(t, []v1.CompletionTypeAttribute{v1.Permanent}, o.Attributes)
}

func TestTheEndOfALogIsKept(t *testing.T) {
	data, truncated, err := tail(strings.NewReader("short"), 10)
	require.NoError(t, err)
	assert.Equal(t, "short", string(data))
	assert.False(t, truncated)
	data, truncated, err = tail(strings.NewReader(strings.Repeat("x", 200_000)+"the end"), 10)
	require.NoError(t, err)
	assert.Equal(t, "xxxthe end", string(data))
	assert.True(t, truncated)
}

func TestOnlyAPodThatRanHasALog(t *testing.T) {
	now := metav1.Now()
	ran := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: now}}
	p := &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", State: ran}}}}
	assert.Equal(t, "init", logContainer(p))
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "side", State: ran}, {Name: "app", State: ran}}
	assert.Equal(t, "app", logContainer(p))
	assert.Empty(t, logContainer(&corev1.Pod{}))
	assert.Empty(t, logContainer(nil))
}

func TestEventsOfBothFormsAreRead(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	old := &corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: "1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "abc-worker-0"},
		Count: 3, LastTimestamp: metav1.NewTime(at), Source: corev1.EventSource{Component: "kubelet"}, Reason: "Pulled"}
	assert.Equal(t, "abc", frameworkOf(old))
	got := toEvent(old)
	assert.Equal(t, int32(3), got.Count)
	assert.Equal(t, "kubelet", got.Source)
	assert.Equal(t, at, got.Time)
	series := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Framework", Name: "abc"}, ReportingController: "pai-controller",
		EventTime: metav1.NewMicroTime(at.Add(-time.Hour)), Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(at)}}
	assert.Equal(t, "abc", frameworkOf(series))
	got = toEvent(series)
	assert.Equal(t, int32(7), got.Count)
	assert.Equal(t, "pai-controller", got.Source)
	assert.Equal(t, at, got.Time)
	assert.Empty(t, frameworkOf(&corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "other"}}))
}

func TestCallsAreCountedByResource(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/jobs/pods":       "pods",
		"/api/v1/namespaces/jobs/pods/p/log": "pods/log",
		"/api/v1/nodes/n":                    "nodes",
		"/apis/frameworkcontroller.microsoft.com/v1/namespaces/jobs/frameworks/f/status": "frameworks/status",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/jobs/roles":                       "roles",
		"/api/v1/namespaces/jobs": "namespaces",
		"/version":                "other",
		"/":                       "other",
	} {
		assert.Equal(t, want, resource(path), path)
	}
}

func TestWhatATemplateSaysForThePlatformIsTakenOut(t *testing.T) {
	template := app(corev1.Container{})
	template.Finalizers = []string{"evil.example/x"}
	template.Annotations = map[string]string{annotation.BindInfoKey: "x", annotation.IsolationKey: "0", annotation.LegacyIsolationKey: "0",
		annotation.PlacementKey: "x", annotation.SpecKey: "virtualCluster: default\nleafCellNumber: 1\n"}
	f, st, task := jobOf(1, template)
	p, err := makePod(f, st, "worker", task, nil)
	require.NoError(t, err)
	assert.Empty(t, p.Finalizers)
	for _, key := range []string{annotation.BindInfoKey, annotation.IsolationKey, annotation.LegacyIsolationKey, annotation.PlacementKey} {
		assert.NotContains(t, p.Annotations, key)
	}
	assert.Contains(t, p.Annotations, annotation.SpecKey)
	assert.Equal(t, []string{"evil.example/x"}, f.Spec.TaskRoles[0].Task.Pod.Finalizers, "the template itself isn't changed")
}

func TestWhatATemplateLeavesOutIsFilledInSafely(t *testing.T) {
	gpus := func(c corev1.Container) string {
		for _, e := range c.Env {
			switch {
			case e.Name != "NVIDIA_VISIBLE_DEVICES":
			case e.ValueFrom != nil:
				return e.ValueFrom.FieldRef.FieldPath
			default:
				return e.Value
			}
		}
		return "unset"
	}
	limits := func(name corev1.ResourceName) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{name: amount.MustParse("1")}}
	}
	isolation := "metadata.annotations['" + annotation.IsolationKey + "']"
	for name, test := range map[string]struct {
		c    corev1.Container
		want string
	}{
		"no GPU":              {corev1.Container{}, "none"},
		"cells":               {corev1.Container{Resources: limits(annotation.EnableKey)}, isolation},
		"the device plugin":   {corev1.Container{Resources: limits("nvidia.com/gpu")}, "unset"},
		"its own word":        {corev1.Container{Env: []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}}}, "all"}, // the API server refuses it
		"all taken from root": {corev1.Container{SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			f, st, task := jobOf(1, app(test.c))
			p, err := makePod(f, st, "worker", task, nil)
			require.NoError(t, err)
			c := p.Spec.Containers[0]
			assert.Equal(t, test.want, gpus(c))
			assert.Len(t, c.SecurityContext.Capabilities.Drop, 1)
			assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, p.Spec.SecurityContext.SeccompProfile.Type)
			assert.Equal(t, "pai-job-test", p.Spec.PriorityClassName)
			f.Annotations[v1.AnnotationPriority] = "crit"
			p, err = makePod(f, st, "worker", task, nil)
			require.NoError(t, err)
			assert.Equal(t, "pai-job-crit", p.Spec.PriorityClassName)
		})
	}
}
