package v1

import (
	"crypto/md5" //nolint:gosec // names of objects, as OpenPAI makes them; nothing relies on its strength
	"encoding/hex"
	"strconv"
)

// Labels and annotations. Those without a prefix are OpenPAI's and FrameworkController's.
const (
	LabelFramework = "FC_FRAMEWORK_NAME" // on pods, ConfigMaps, Secrets, roles of a job
	LabelTaskRole  = "FC_TASKROLE_NAME"  // on pods: the name in the Framework
	LabelTaskIndex = "FC_TASK_INDEX"     // on pods
	LabelUser      = "userName"
	LabelVC        = "virtualCluster"
	LabelGroup     = "paictl.openpai.org/user-group"

	AnnotationFrameworkAttempt = "FC_FRAMEWORK_ATTEMPT_ID" // on pods
	AnnotationTaskAttempt      = "FC_TASK_ATTEMPT_ID"      // on pods

	// On the Framework.
	AnnotationJobName  = "jobName"
	AnnotationConfig   = "config" // the submitted text, secrets masked
	AnnotationGPUs     = "totalGpuNumber"
	AnnotationLogInfix = "logPathInfix"
	// AnnotationGPUsTaken is the number of GPUs that the tasks which request GPUs get, if their processors or memory are the share of
	// more GPUs.
	AnnotationGPUsTaken = "paictl.openpai.org/gpus-taken"
	// AnnotationRuntime makes the controller create the objects of the job runtime; its value is one of RuntimeV1 and RuntimeV2.
	// Frameworks of other tools don't have it and don't get these objects.
	AnnotationRuntime = "paictl.openpai.org/runtime"
	// AnnotationConfigHash is the sha256 of AnnotationConfig at its submission. It distinguishes an interrupted submission from another
	// job of that name.
	AnnotationConfigHash = "paictl.openpai.org/config-hash"
	// AnnotationGang is "false" if the tasks don't wait for each other.
	AnnotationGang = "paictl.openpai.org/gang"
	// AnnotationPriority is the job's requested priority class: crit, prod, test, oppo.
	AnnotationPriority = "paictl.openpai.org/priority"
	// AnnotationHostNetwork is "true" if tasks use their machine's network and ports.
	AnnotationHostNetwork = "paictl.openpai.org/host-network"
	// AnnotationRestart is any text; changing it requests one more attempt of a running job.
	AnnotationRestart = "paictl.openpai.org/restart"

	// AnnotationExpired is "true" on a Framework that the controller deletes because its time has expired.
	AnnotationExpired = "paictl.openpai.org/expired"
	// AnnotationStopped explains why someone other than the owner stopped the job, in one sentence.
	AnnotationStopped = "paictl.openpai.org/stopped-because"
	// AnnotationCode is the sha256 of the folder of code that was submitted with the job, so that the archive
	// keeps it as long as the job.
	AnnotationCode = "paictl.openpai.org/code"
	// AnnotationSubmission is the key of the submission that made a job. If the submission is sent again because its response was lost, it
	// has the same key.
	AnnotationSubmission = "paictl.openpai.org/submission"

	// AnnotationTaskRole on a pod template is the role's name as the user wrote it.
	AnnotationTaskRole = "paictl.openpai.org/task-role"
	// AnnotationPorts on a pod template has the labels of a task's ports and the number of ports of each label, in
	// OpenPAI's form: {"schedulePortStart":15000,"schedulePortEnd":40000,"ports":{"ssh":{"count":1}}}.
	AnnotationPorts = "rest-server/port-scheduling-spec"
)

// Finalizer keeps a Framework that is being deleted until its pods have ended and it is archived. The controller adds it if the
// submission didn't.
const Finalizer = "paictl.openpai.org/archive"

// Values of AnnotationRuntime. With each the job has a headless Service.
const (
	// RuntimeV1 is the value for jobs of an earlier paictl: the addresses of all tasks are in the attempt's ConfigMap, which
	// the job's own service account may watch.
	RuntimeV1 = "v1"
	// RuntimeV2 is the value for jobs whose tasks request the addresses from the controller. Their pods belong to the Framework
	// itself, and an attempt has no ConfigMap.
	RuntimeV2 = "v2"
)

// OwnRuntime reports whether the job runtime runs in the pods of a Framework.
func (f *Framework) OwnRuntime() bool {
	r := f.Annotations[AnnotationRuntime]
	return r == RuntimeV1 || r == RuntimeV2
}

// OwnsPods reports whether the pods of a Framework belong to it, and not to a ConfigMap of the attempt.
func (f *Framework) OwnsPods() bool { return f.Annotations[AnnotationRuntime] == RuntimeV2 }

// PeersKey is the key of the attempt's ConfigMap, in binaryData, that holds the peers: gzipped text
// of pkg/runtime/peers.
const PeersKey = "peers"

// PriorityTest is the default priority of jobs.
const PriorityTest = "test"

// PriorityOpportunistic is the priority of jobs that use free resources only.
const PriorityOpportunistic = "oppo"

// Priorities returns all priorities, highest first.
func Priorities() []string { return []string{"crit", "prod", PriorityTest, PriorityOpportunistic} }

// PriorityClass returns the Kubernetes PriorityClass of a job's priority: crit, prod, test or oppo. The chart
// cluster-configuration installs them; their values are the scheduler's.
func PriorityClass(priority string) string { return "pai-job-" + priority }

// FullName returns OpenPAI's name of the framework: USER~JOB.
func FullName(user, job string) string { return user + "~" + job }

// ObjectName returns the name of the Framework object: the MD5 of the full name, in 32 hex digits.
func ObjectName(user, job string) string {
	sum := md5.Sum([]byte(FullName(user, job))) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// ConfigMapName returns the name of the ConfigMap of a Framework's attempt.
func ConfigMapName(framework string) string { return framework + "-attempt" }

// PodName returns the name of a task's pod. It is the same for all attempts, so that two can't exist at a time.
func PodName(framework, role string, index int32) string {
	return framework + "-" + role + "-" + strconv.Itoa(int(index))
}

// SpecSecretName returns the name of the Secret with the job runtime's spec: its commands, with the values of secrets.
func SpecSecretName(framework string) string { return framework + "-spec" }

// SpecKey is the key of the spec in that Secret.
const SpecKey = "spec.json"

// FingerprintKey is another key in that Secret, with the sha256 of the submitted text and its secrets. AnnotationConfigHash can't distinguish jobs
// that differ only in their secrets, and must not, because more people can read annotations.
const FingerprintKey = "job.sha256"

// RegistrySecretName returns the name of the Secret with the logins to the job's registries.
func RegistrySecretName(framework string) string { return framework + "-regcred" }
