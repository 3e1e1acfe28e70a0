package render

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

const (
	appContainer = "app"

	volumeHome  = "pai-vol"
	volumeShm   = "dshm"
	volumeSpec  = "pai-spec"
	volumeRules = "pai-rules"
	volumeToken = "pai-token"

	tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is the lifetime of the tokens in seconds. It is the shortest lifetime for which Kubernetes doesn't warn. The kubelet renews
	// the tokens.
	tokenSeconds = 3607

	defaultShmMB = 512
)

// ResourceGPU is the resource that tasks request from Kubernetes if no GPU scheduler runs.
const ResourceGPU = "nvidia.com/gpu"

// ResourceRDMA is the resource that tasks with extraContainerOptions.infiniband request.
const ResourceRDMA = "rdma/hca"

// pod returns the pod template of a role. The template contains no secrets, no host paths and no privileges. The controller adds the fields that
// depend on the task, such as the name, host name, subdomain and FC_ variables.
func (r *renderer) pod(i int) corev1.PodTemplateSpec {
	labels := r.labels()
	labels["type"] = "kube-launcher-task"
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: r.podAnnotations(i)},
		Spec:       r.podSpec(i),
	}
}

func (r *renderer) podAnnotations(i int) map[string]string {
	role := &r.job.Roles[i]
	type count struct {
		Count int `json:"count"`
	}
	ports := struct {
		Start int              `json:"schedulePortStart"`
		End   int              `json:"schedulePortEnd"`
		Ports map[string]count `json:"ports"`
	}{portStart, portEnd, map[string]count{}}
	for _, p := range role.Ports {
		ports.Ports[p.Label] = count{p.Count}
	}
	text, _ := json.Marshal(ports) // numbers and names: nothing can fail
	a := map[string]string{v1.AnnotationTaskRole: role.Name, v1.AnnotationPorts: string(text)}
	if r.useCells() {
		a[annotation.SpecKey] = r.request(i)
	}
	return a
}

func (r *renderer) podSpec(i int) corev1.PodSpec {
	role := &r.job.Roles[i]
	no, grace := false, int64(r.job.Extras.GracePeriodSec+stopSlack)
	p := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: &grace,
		AutomountServiceAccountToken:  &no,
		// In a namespace with thousands of Services, the links would fill the environment.
		EnableServiceLinks: &no,
		SecurityContext:    &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		HostNetwork:        r.job.Extras.HostNetwork,
		PriorityClassName:  v1.PriorityClass(r.job.Extras.Priority),
		Volumes:            r.volumes(r.bounds[i].shmMB),
		Affinity:           r.affinity(),
		ImagePullSecrets:   r.pullSecrets(role),
		InitContainers: []corev1.Container{{
			Name: spec.InitContainer, Image: r.Cluster.RuntimeImage, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"install", spec.Home},
			VolumeMounts: []corev1.VolumeMount{{Name: volumeHome, MountPath: spec.Home}},
			Resources:    corev1.ResourceRequirements{Limits: hostResources(role, r.bounds[i]), Requests: requestsOf(role)},
		}},
		Containers: []corev1.Container{{
			Name: appContainer, Image: role.Image, Command: []string{spec.Runtime, "run"},
			Env: r.env(role), VolumeMounts: r.mounts(), Resources: corev1.ResourceRequirements{Limits: r.limits(i), Requests: requestsOf(role)},
			TerminationMessagePath: spec.TerminationLog, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}},
	}
	if r.useCells() {
		p.SchedulerName = r.Cluster.SchedulerName
	}
	if r.watches() {
		p.ServiceAccountName = r.object
	}
	if r.many() {
		p.DNSConfig = &corev1.PodDNSConfig{Searches: []string{r.domain()}}
	}
	if p.HostNetwork {
		p.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	if s := int64(r.job.Extras.MaxDurationSec); s > 0 {
		p.ActiveDeadlineSeconds = &s
	}
	return p
}

func (r *renderer) pullSecrets(role *protocol.Role) []corev1.LocalObjectReference {
	var out []corev1.LocalObjectReference
	if r.Cluster.PullSecret != "" {
		out = append(out, corev1.LocalObjectReference{Name: r.Cluster.PullSecret})
	}
	if role.Auth {
		out = append(out, corev1.LocalObjectReference{Name: v1.RegistrySecretName(r.object)})
	}
	return out
}

func (r *renderer) affinity() *corev1.Affinity {
	if len(r.Cluster.NodeLabels) == 0 {
		return nil
	}
	var rules []corev1.NodeSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(r.Cluster.NodeLabels)) {
		rules = append(rules, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{r.Cluster.NodeLabels[key]}})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: rules}},
	}}}
}

// wholeCPUs returns the number of processors rounded up, for programs that require a whole number.
func wholeCPUs(milli int) int { return (milli + 999) / 1000 }

// requestsOf returns the resource requests of a role. They are 0 for resources that the file doesn't request but that have a limit, because
// Kubernetes would otherwise request as much as the limit. Disk space is never requested, because some machines don't report their disk space.
func requestsOf(role *protocol.Role) corev1.ResourceList {
	l := corev1.ResourceList{}
	if role.MilliCPU == 0 {
		l[corev1.ResourceCPU] = resource.Quantity{Format: resource.DecimalSI}
	}
	if role.MemoryMB == 0 {
		l[corev1.ResourceMemory] = resource.Quantity{Format: resource.BinarySI}
	}
	if role.DiskMB > 0 {
		l[corev1.ResourceEphemeralStorage] = resource.Quantity{Format: resource.BinarySI}
	}
	if len(l) == 0 {
		return nil
	}
	return l
}

// hostResources returns the limits for processors, memory and disk space. If the job file sets no disk space, the result doesn't include it, so
// that the default of the cluster's LimitRange applies.
func hostResources(role *protocol.Role, b bounds) corev1.ResourceList {
	l := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(b.milliCPU), resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse(strconv.Itoa(b.memoryMB) + "Mi"),
	}
	if role.DiskMB > 0 {
		l[corev1.ResourceEphemeralStorage] = resource.MustParse(strconv.Itoa(role.DiskMB) + "Mi")
	}
	return l
}

func (r *renderer) limits(i int) corev1.ResourceList {
	role := &r.job.Roles[i]
	l := hostResources(role, r.bounds[i])
	one := *resource.NewQuantity(1, resource.DecimalSI)
	switch {
	case r.useCells():
		l[annotation.EnableKey] = one
	case role.GPU > 0:
		l[ResourceGPU] = *resource.NewQuantity(int64(role.GPU), resource.DecimalSI)
	}
	if role.Infiniband {
		l[ResourceRDMA] = one
	}
	return l
}

// env returns the environment variables whose values only Kubernetes knows. The runtime adds the other variables.
func (r *renderer) env(role *protocol.Role) []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	out := []corev1.EnvVar{field("PAI_POD_IP", "status.podIP"), field("PAI_HOST_IP", "status.hostIP"), field("PAI_NODE_NAME", "spec.nodeName")}
	switch {
	case role.GPU == 0:
		// CUDA images set the variable to "all" by default.
		out = append(out, corev1.EnvVar{Name: "NVIDIA_VISIBLE_DEVICES", Value: "none"}, corev1.EnvVar{Name: "HIVED_VISIBLE_DEVICES", Value: "none"})
	case r.useCells():
		isolation := "metadata.annotations['" + annotation.IsolationKey + "']"
		out = append(out, field("NVIDIA_VISIBLE_DEVICES", isolation), field("HIVED_VISIBLE_DEVICES", isolation))
	}
	return out
}

func (r *renderer) mounts() []corev1.VolumeMount {
	out := []corev1.VolumeMount{
		{Name: volumeHome, MountPath: spec.Home}, {Name: volumeShm, MountPath: "/dev/shm"},
		{Name: volumeSpec, MountPath: path.Dir(spec.File), ReadOnly: true}, {Name: volumeRules, MountPath: path.Dir(spec.Rules), ReadOnly: true},
	}
	if r.watches() {
		out = append(out, corev1.VolumeMount{Name: volumeToken, MountPath: tokenPath, ReadOnly: true})
	}
	for _, s := range r.storages() {
		m := corev1.VolumeMount{Name: s.volume, MountPath: s.MountPath, ReadOnly: s.facts.ReadOnly}
		if s.facts.PerUser {
			m.SubPath = r.User
		}
		out = append(out, m)
	}
	return out
}

func (r *renderer) volumes(shm int) []corev1.Volume {
	size, readable, yes := resource.MustParse(strconv.Itoa(shm)+"Mi"), int32(0o444), true
	out := []corev1.Volume{
		{Name: volumeHome, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: volumeShm, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &size}}},
		// The file is readable for all users in the container, because the image's user is unknown and may not be root.
		{Name: volumeSpec, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: v1.SpecSecretName(r.object), DefaultMode: &readable}}},
		{Name: volumeRules, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: spec.RulesConfigMap}, Optional: &yes,
		}}},
	}
	if r.watches() {
		out = append(out, tokenVolume())
	}
	for _, s := range r.storages() {
		out = append(out, corev1.Volume{Name: s.volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.claim(), ReadOnly: s.facts.ReadOnly},
		}})
	}
	return out
}

// tokenVolume returns a volume with a token. With the token, the runtime can watch the ConfigMap with the addresses of the job's tasks. The
// service account has no other rights.
func tokenVolume() corev1.Volume {
	seconds := int64(tokenSeconds)
	return corev1.Volume{Name: volumeToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
	}}}}
}
