package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

const (
	// portStart and portEnd limit the range of ports for tasks. portEnd isn't included.
	portStart, portEnd = 15000, 40000
	// stopTimeout is the number of seconds until a pod that is being deleted is deleted by force. It must be longer than any grace period.
	stopTimeout = 600
	// stopSlack is how many seconds the runtime has after the grace period to write its report.
	stopSlack = 15
	// maxObject and maxAnnotations are the API server's limits in bytes, minus room for its own additions.
	maxObject, maxAnnotations = 1 << 20, 250 << 10
)

// Render makes the objects for a job. They are nil if a finding is an error.
func Render(j *protocol.Job, o Options) (*Objects, strictyaml.Findings) {
	r := newRenderer(j, o)
	r.check()
	if len(r.findings.Errors()) > 0 {
		r.findings.Sort()
		return nil, r.findings
	}
	out := &Objects{Framework: r.framework(), After: r.job.Extras.After}
	if s := r.specSecret(); s != nil {
		out.Secrets = append(out.Secrets, s)
	}
	if s := r.registrySecret(); s != nil {
		out.Secrets = append(out.Secrets, s)
	}
	r.checkSizes(out)
	r.findings.Sort()
	if len(r.findings.Errors()) > 0 {
		return nil, r.findings
	}
	return out, r.findings
}

// Check compares the requests of a job with the cluster, like Render, but doesn't make objects.
func Check(j *protocol.Job, o Options) strictyaml.Findings {
	r := newRenderer(j, o)
	r.check()
	r.findings.Sort()
	return r.findings
}

func newRenderer(j *protocol.Job, o Options) *renderer {
	r := &renderer{job: j, Options: o, object: v1.ObjectName(o.User, j.Name)}
	if r.Namespace == "" {
		r.Namespace = defaultNamespace
	}
	if r.Cluster.Domain == "" {
		r.Cluster.Domain = defaultDomain
	}
	return r
}

const (
	defaultNamespace = "pai-jobs"
	defaultDomain    = "cluster.local"
)

type renderer struct {
	Options
	job          *protocol.Job
	object       string        // name of the Framework
	types        []string      // the types of the requested cells, by role; "" is any GPU
	cells        []int         // the cells of one task, by role
	named        bool          // a role names its affinity group
	implied      []bool        // whether a role gets CPU cells although it names no type
	outgrown     []bool        // whether it would get them if it weren't too large
	alternatives []alternative // the alternatives of a role that takes CPU cells
	bounds       []bounds      // the bounds of tasks, by role
	groups       []*group      // by role; nil for a role without one
	sshKey       string        // the key of the job, after a role has needed it
	findings     strictyaml.Findings
}

func (r *renderer) fail(path strictyaml.Path, rule, message, remedy string) {
	r.findings = append(r.findings, r.job.Finding(path, rule, message, remedy))
}

func (r *renderer) warn(path strictyaml.Path, rule, message, remedy string) {
	f := r.job.Finding(path, rule, message, remedy)
	f.Severity = strictyaml.Warning
	r.findings = append(r.findings, f)
}

// many reports whether the job has several tasks, which may connect to each other.
func (r *renderer) many() bool { return r.job.Tasks() > 1 }

// watches reports whether the tasks watch a ConfigMap to get each other's addresses.
func (r *renderer) watches() bool { return r.many() && r.Cluster.PeersURL == "" }

// runtime returns the value of AnnotationRuntime for the job.
func (r *renderer) runtime() string {
	if r.Cluster.PeersURL == "" {
		return v1.RuntimeV1
	}
	return v1.RuntimeV2
}

// domain returns the domain suffix for the host names of tasks. It returns "" for a job with one task, which has no Service.
func (r *renderer) domain() string {
	if !r.many() {
		return ""
	}
	return r.object + "." + r.Namespace + ".svc." + r.Cluster.Domain
}

func (r *renderer) labels() map[string]string {
	l := map[string]string{v1.LabelUser: r.User, v1.LabelVC: r.job.VirtualCluster}
	if r.Group != "" {
		l[v1.LabelGroup] = r.Group
	}
	return l
}

// hash returns a hash that distinguishes a job whose submission was interrupted from another job with the same name. It is the hash of the text
// without secrets, because with a hash of the secrets, readers of the annotation could check guesses. The fingerprint in the Secret distinguishes
// jobs that differ only in their secrets.
func hash(masked []byte) string {
	sum := sha256.Sum256(masked)
	return hex.EncodeToString(sum[:])
}

func (r *renderer) framework() *v1.Framework {
	j := r.job
	masked, err := j.Masked()
	if err != nil {
		r.fail(nil, "job/mask", err.Error(), "write the file without anchors and unusual characters")
	}
	f := &v1.Framework{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "Framework"},
		ObjectMeta: metav1.ObjectMeta{Name: r.object, Namespace: r.Namespace, Labels: r.labels(), Finalizers: []string{v1.Finalizer}, Annotations: map[string]string{
			v1.AnnotationJobName: j.Name, v1.AnnotationLogInfix: r.object, v1.AnnotationConfig: string(masked),
			v1.AnnotationGPUs: strconv.Itoa(j.GPUs()), v1.AnnotationRuntime: r.runtime(), v1.AnnotationConfigHash: hash(masked),
			v1.AnnotationGang: strconv.FormatBool(j.Extras.Gang), v1.AnnotationPriority: j.Extras.Priority,
			v1.AnnotationHostNetwork: strconv.FormatBool(j.Extras.HostNetwork),
		}},
		Spec: v1.FrameworkSpec{
			ExecutionType: v1.ExecutionStart,
			RetryPolicy:   v1.RetryPolicy{FancyRetryPolicy: true, MaxRetryCount: int32(j.RetryCount)},
		},
	}
	if taken := r.taken(); taken > j.GPUs() {
		f.Annotations[v1.AnnotationGPUsTaken] = strconv.Itoa(taken)
	}
	if j.Extras.SelectsNotices {
		f.Annotations[v1.AnnotationNotify] = v1.WriteNotify(j.Extras.Notify)
	}
	if r.Code != nil {
		f.Annotations[v1.AnnotationCode] = r.Code.SHA256
	}
	for i := range j.Roles {
		f.Spec.TaskRoles = append(f.Spec.TaskRoles, r.taskRole(i))
	}
	return f
}

const apiVersion = "frameworkcontroller.microsoft.com/v1"

func (r *renderer) taskRole(i int) v1.TaskRole {
	role := &r.job.Roles[i]
	timeout := int64(max(stopTimeout, r.job.Extras.GracePeriodSec+stopTimeout/2))
	task := v1.Task{PodGracefulDeletionTimeoutSec: &timeout, Pod: r.pod(i)}
	if !r.job.Extras.Gang {
		// The tasks of a gang fail and are retried together, so the retry policy of the job applies to them.
		task.RetryPolicy = v1.RetryPolicy{FancyRetryPolicy: true, MaxRetryCount: int32(role.RetryCount)}
	}
	return v1.TaskRole{
		Name: role.Object, TaskNumber: int32(role.Instances), Task: task,
		FrameworkAttemptCompletionPolicy: v1.CompletionPolicy{MinFailedTaskCount: int32(role.MinFailed), MinSucceededTaskCount: int32(role.MinSucceeded)},
	}
}

// spec returns the data for the job's tasks, which includes secrets.
func (r *renderer) spec() *spec.Spec {
	j := r.job
	s := &spec.Spec{
		Version: spec.Version, Framework: r.object, User: r.User, Job: j.Name, VirtualCluster: j.VirtualCluster,
		Gang: j.Extras.Gang, HostNetwork: j.Extras.HostNetwork, PortStart: portStart, PortEnd: portEnd,
		GracePeriodSec: j.Extras.GracePeriodSec, CheckpointDir: r.checkpointDir(), Code: r.Code, PeersURL: r.Cluster.PeersURL, Domain: r.domain(),
	}
	for i := range j.Roles {
		s.Roles = append(s.Roles, r.specRole(i))
	}
	return s
}

func (r *renderer) specRole(i int) spec.Role {
	role, b := &r.job.Roles[i], r.bounds[i]
	out := spec.Role{
		Name: role.Name, Object: role.Object, Instances: role.Instances, GPU: role.GPU, CPU: wholeCPUs(b.milliCPU), MemoryMB: b.memoryMB, ShmMB: role.ShmMB,
		MinFailed: role.MinFailed, MinSucceeded: role.MinSucceeded, Command: role.Command.Reveal(), Shell: role.Shell,
	}
	if out.Command == "" && len(role.Exec) == 0 {
		out.Command = ":" // an empty command succeeds, as in OpenPAI
	}
	for _, p := range role.Ports {
		out.Ports = append(out.Ports, spec.Port{Label: p.Label, Count: p.Count})
	}
	for _, e := range role.Exec {
		out.Exec = append(out.Exec, e.Reveal())
	}
	for _, p := range role.Plugins {
		out.Plugins = append(out.Plugins, spec.Plugin{Name: p.Name, IgnoreFailure: p.IgnoreFailure, Parameters: r.parameters(p)})
	}
	return out
}

// checkpointDir returns a folder that keeps its files between attempts: the requested folder, or a folder on the first writable storage. It
// returns "" if there is no such storage.
func (r *renderer) checkpointDir() string {
	if dir := r.job.Extras.CheckpointDir; dir != "" {
		return dir
	}
	for _, s := range r.storages() {
		if !s.facts.ReadOnly {
			return s.MountPath + "/.checkpoints/" + r.User + "/" + r.job.Name
		}
	}
	return ""
}

// checkSizes reports objects that are too large, because the API server would reject them with a less helpful message.
func (r *renderer) checkSizes(o *Objects) {
	b, err := json.Marshal(o.Framework)
	switch {
	case err != nil:
		r.fail(nil, "job/size", fmt.Sprintf("the job can't be written as JSON: %v", err), "")
	case len(b) > maxObject || len(o.Framework.Annotations[v1.AnnotationConfig]) > maxAnnotations:
		r.fail(strictyaml.Path{"taskRoles"}, "job/size", fmt.Sprintf("the job has %d kB as a Kubernetes object, but the limit is %d kB", len(b)>>10, maxObject>>10),
			"split it into several jobs, or use fewer roles with more instances")
	}
	for _, s := range o.Secrets {
		n := 0
		for _, v := range s.Data {
			n += len(v)
		}
		if n > maxObject-(16<<10) {
			r.fail(strictyaml.Path{"taskRoles"}, "job/size", fmt.Sprintf("the commands have %d kB with all references filled in, but the limit is %d kB", n>>10, maxObject>>10),
				"put programs and data on storage, into the image, or into a folder that is sent with the job (--code)")
		}
	}
}

// labelValue matches valid values of labels in Kubernetes.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

func isLabel(s string) bool { return len(s) <= 63 && labelValue.MatchString(s) }
