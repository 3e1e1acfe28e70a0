package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// makePod returns the pod for a task's attempt. The pod must not run on the nodes in avoid.
func makePod(f *v1.Framework, st *v1.FrameworkStatus, role string, t *v1.TaskStatus, avoid []string) (*corev1.Pod, error) {
	var of *v1.TaskRole
	for i := range f.Spec.TaskRoles {
		if f.Spec.TaskRoles[i].Name == role {
			of = &f.Spec.TaskRoles[i]
		}
	}
	if of == nil || t == nil || machine.OwnerUID(f, &st.AttemptStatus) == "" {
		return nil, fmt.Errorf("task role %s is no longer part of the job", role)
	}
	values := identity(f, st, role, t)
	text, err := of.Task.Template()
	if err != nil {
		return nil, err
	}
	template, err := fillIn(text, values)
	if err != nil {
		return nil, err
	}
	p := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	p.Name, p.GenerateName, p.Namespace = t.AttemptStatus.PodName, "", f.Namespace
	p.OwnerReferences = []metav1.OwnerReference{*podOwner(f, &st.AttemptStatus)}
	p.Labels = merge(p.Labels, map[string]string{v1.LabelFramework: f.Name, v1.LabelTaskRole: role, v1.LabelTaskIndex: values["FC_TASK_INDEX"]})
	// The labels that determine the owner for quotas come from the Framework, and not from the pod template.
	for _, label := range []string{v1.LabelUser, v1.LabelGroup} {
		if user := f.Labels[label]; user != "" {
			p.Labels[label] = user
		} else {
			delete(p.Labels, label)
		}
	}
	p.Annotations = merge(p.Annotations, annotations(f, values))
	if p.Spec.RestartPolicy == "" {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	if f.OwnRuntime() && p.Spec.Hostname == "" && !p.Spec.HostNetwork {
		if host := role + "-" + values["FC_TASK_INDEX"]; len(host) <= 63 {
			p.Spec.Hostname = host
			if machine.Many(f) { // only then does a Service name them
				p.Spec.Subdomain = f.Name
			}
		}
	}
	for _, cs := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range cs {
			if !f.OwnsPods() {
				cs[i].Env = addEnv(cs[i].Env, values)
			}
			if cs[i].TerminationMessagePolicy == "" {
				cs[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
			}
		}
	}
	guard(p, f.Annotations[v1.AnnotationPriority])
	return p, stayAway(p, avoid)
}

// identity returns the identity of a pod, as variables with the names that FrameworkController uses.
func identity(f *v1.Framework, st *v1.FrameworkStatus, role string, t *v1.TaskStatus) map[string]string {
	a := &st.AttemptStatus
	owner := machine.OwnerUID(f, a)
	out := map[string]string{
		"FC_FRAMEWORK_NAMESPACE": f.Namespace, "FC_FRAMEWORK_NAME": f.Name, "FC_FRAMEWORK_UID": string(f.UID),
		v1.AnnotationFrameworkAttempt: strconv.Itoa(int(a.ID)), "FC_CONFIGMAP_NAME": a.ConfigMapName, "FC_CONFIGMAP_UID": owner,
		"FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": strconv.Itoa(int(a.ID)) + "_" + owner,
		"FC_TASKROLE_NAME":                  role, "FC_TASK_INDEX": strconv.Itoa(int(t.Index)), machine.AnnotationTaskUID: t.InstanceUID,
		v1.AnnotationTaskAttempt: strconv.Itoa(int(t.AttemptStatus.ID)), "FC_POD_NAME": t.AttemptStatus.PodName,
	}
	for _, r := range a.TaskRoleStatuses {
		if r.Name == role {
			out["FC_TASKROLE_UID"] = r.InstanceUID
		}
	}
	return out
}

// podOwner returns the owner reference for the pods of an attempt.
func podOwner(f *v1.Framework, a *v1.FrameworkAttemptStatus) *metav1.OwnerReference {
	if f.OwnsPods() {
		return metav1.NewControllerRef(f, v1.GroupVersion.WithKind(v1.Kind))
	}
	yes := true
	return &metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: a.ConfigMapName, UID: types.UID(*a.ConfigMapUID), Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

// annotations returns the annotations with the identity of a pod. Each field of a pod costs time in the API server and in all watchers whenever
// the pod changes. So pods of paictl's own jobs have only the annotations that the controller reads.
func annotations(f *v1.Framework, values map[string]string) map[string]string {
	if !f.OwnsPods() {
		return values
	}
	out := map[string]string{}
	for _, k := range []string{v1.AnnotationFrameworkAttempt, v1.AnnotationTaskAttempt, machine.AnnotationTaskUID} {
		out[k] = values[k]
	}
	return out
}

// introduce passes the identity of a task to the job runtime in one variable. The runtime derives FrameworkController's variables from that
// variable. If the tasks wait for each other, introduce also passes the token for their addresses.
func (r *reconciler) introduce(f *v1.Framework, st *v1.FrameworkStatus, role string, t *v1.TaskStatus, c *corev1.Container) error {
	self := spec.Task{Role: role, Index: int(t.Index), Attempt: int(st.AttemptStatus.ID), TaskAttempt: int(t.AttemptStatus.ID)}
	env := []corev1.EnvVar{{Name: spec.TaskVariable, Value: self.String()}}
	if machine.Gang(f) {
		token, err := r.token(f, spec.PeersTokenVariable, f.Name)
		if err != nil {
			return err
		}
		env = append(env, token)
	}
	if f.Annotations[v1.AnnotationHostNetwork] == "true" { // the share decides the task's ports
		env = append(env, podUID)
	}
	c.Env = append(env, c.Env...)
	return nil
}

// openCode passes the token for the job's code to the job runtime.
func (r *reconciler) openCode(f *v1.Framework, c *corev1.Container) error {
	code := f.Annotations[v1.AnnotationCode]
	if code == "" {
		return nil
	}
	token, err := r.token(f, spec.CodeTokenVariable, peers.OfCode(code))
	if err != nil {
		return err
	}
	c.Env = append([]corev1.EnvVar{token}, c.Env...)
	return nil
}

// token returns the environment variable name with the job's token for something, which is either a Framework's addresses or code.
func (r *reconciler) token(f *v1.Framework, name, something string) (corev1.EnvVar, error) {
	key := r.o.PeersKey()
	if len(key) == 0 {
		return corev1.EnvVar{}, errors.New("the Secret with the key of the tasks' tokens isn't read yet")
	}
	return corev1.EnvVar{Name: name, Value: peers.Token(key, something, string(f.UID))}, nil
}

// podUID is an environment variable with the UID of the pod itself.
var podUID = corev1.EnvVar{Name: "FC_POD_UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.uid"}}}

// placeholders lists the names that {{NAME}} may contain in any text of a template.
var placeholders = []string{"FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME", "FC_TASKROLE_NAME", "FC_TASK_INDEX", "FC_CONFIGMAP_NAME", "FC_POD_NAME"}

func fillIn(template string, values map[string]string) (*corev1.PodTemplateSpec, error) {
	if strings.Contains(template, "{{FC_") {
		pairs := make([]string, 0, 2*len(placeholders))
		for _, name := range placeholders {
			pairs = append(pairs, "{{"+name+"}}", values[name]) // names and numbers, which JSON doesn't quote
		}
		template = strings.NewReplacer(pairs...).Replace(template)
	}
	out := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal([]byte(template), out); err != nil {
		return nil, fmt.Errorf("pod template with its placeholders filled in: %w", err)
	}
	return out, nil
}

func merge(into, from map[string]string) map[string]string {
	out := make(map[string]string, len(into)+len(from))
	for k, v := range into {
		out[k] = v
	}
	for k, v := range from {
		out[k] = v
	}
	return out
}

// addEnv returns the environment with the identity added. The identity comes first, so that the template's own variables may refer to it.
func addEnv(env []corev1.EnvVar, values map[string]string) []corev1.EnvVar {
	has := map[string]bool{}
	for _, e := range env {
		has[e.Name] = true
	}
	out := make([]corev1.EnvVar, 0, len(values)+len(env)+2)
	add := func(e corev1.EnvVar) {
		if !has[e.Name] {
			out = append(out, e)
		}
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(corev1.EnvVar{Name: name, Value: values[name]})
	}
	add(podUID)
	add(corev1.EnvVar{Name: "FC_TASK_ATTEMPT_INSTANCE_UID", Value: "$(FC_TASK_ATTEMPT_ID)_$(FC_POD_UID)"})
	return append(out, env...)
}

// stayAway makes the pod avoid the given nodes. It also makes the GPU scheduler consider only the other nodes.
func stayAway(p *corev1.Pod, nodes []string) error {
	if len(nodes) == 0 {
		return nil
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	a := p.Spec.Affinity.NodeAffinity
	if a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	s := a.RequiredDuringSchedulingIgnoredDuringExecution
	if len(s.NodeSelectorTerms) == 0 {
		s.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	// The terms are alternatives, so each of them must exclude the nodes.
	for i := range s.NodeSelectorTerms {
		s.NodeSelectorTerms[i].MatchExpressions = append(s.NodeSelectorTerms[i].MatchExpressions,
			corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: nodes})
	}
	return honourSuggestions(p)
}

// honourSuggestions changes a pod's request to the GPU scheduler, so that it uses only nodes that Kubernetes suggests. By default it ignores
// these suggestions.
func honourSuggestions(p *corev1.Pod) error {
	text := p.Annotations[annotation.SpecKey]
	if text == "" {
		return nil
	}
	request := map[string]any{}
	if _, findings := strictyaml.Decode("annotation "+annotation.SpecKey, []byte(text), &request); findings.Err() != nil {
		return findings.Err()
	}
	request["ignoreK8sSuggestedNodes"] = false
	data, err := json.Marshal(request) // JSON is YAML
	if err != nil {
		return fmt.Errorf("annotation %s: %w", annotation.SpecKey, err)
	}
	p.Annotations[annotation.SpecKey] = string(data)
	return nil
}
