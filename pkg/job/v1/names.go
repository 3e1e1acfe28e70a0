package v1

import (
	"crypto/md5" //nolint:gosec // names of objects, as OpenPAI makes them; nothing relies on its strength
	"encoding/hex"
	"strconv"
)

// Labels and annotations. Names without a prefix come from OpenPAI and FrameworkController.
const (
	LabelFramework = "FC_FRAMEWORK_NAME" // on pods, ConfigMaps, Secrets, roles of a job
	LabelTaskRole  = "FC_TASKROLE_NAME"  // on pods: the name in the Framework
	LabelTaskIndex = "FC_TASK_INDEX"     // on pods
	LabelUser      = "userName"
	LabelVC        = "virtualCluster"
	LabelGroup     = "paictl.openpai.org/user-group"

	AnnotationFrameworkAttempt = "FC_FRAMEWORK_ATTEMPT_ID" // on pods
	AnnotationTaskAttempt      = "FC_TASK_ATTEMPT_ID"      // on pods

	// Annotations on the Framework.
	AnnotationJobName  = "jobName"
	AnnotationConfig   = "config" // the submitted text, secrets masked
	AnnotationGPUs     = "totalGpuNumber"
	AnnotationLogInfix = "logPathInfix"
	// AnnotationGPUsTaken is how many GPUs are occupied by the tasks that request GPUs, if these tasks need the processors or memory of more GPUs
	// than they request.
	AnnotationGPUsTaken = "paictl.openpai.org/gpus-taken"
	// AnnotationRuntime is RuntimeV1 or RuntimeV2, and makes the controller create the objects that the job runtime needs. For Frameworks of
	// other tools, which don't have the annotation, the controller doesn't create these objects.
	AnnotationRuntime = "paictl.openpai.org/runtime"
	// AnnotationConfigHash is the SHA-256 of AnnotationConfig at submission. It distinguishes a job whose submission was interrupted from another
	// job with the same name.
	AnnotationConfigHash = "paictl.openpai.org/config-hash"
	// AnnotationGang is "false" if the tasks don't wait for each other.
	AnnotationGang = "paictl.openpai.org/gang"
	// AnnotationPriority is the job's requested priority class: crit, prod, test, oppo.
	AnnotationPriority = "paictl.openpai.org/priority"
	// AnnotationHostNetwork is "true" if tasks use their machine's network and ports.
	AnnotationHostNetwork = "paictl.openpai.org/host-network"
	// AnnotationRestart contains any text. Changing the text requests one more attempt of a running job.
	AnnotationRestart = "paictl.openpai.org/restart"

	// AnnotationExpired is "true" on a Framework that the controller deletes because its retention time has expired.
	AnnotationExpired = "paictl.openpai.org/expired"
	// AnnotationStopped says in one sentence why a person or program other than the owner stopped the job.
	AnnotationStopped = "paictl.openpai.org/stopped-because"
	// AnnotationCode is the SHA-256 of the packed code folder that was submitted with the job. The job archive keeps the folder for as long as it
	// keeps the job.
	AnnotationCode = "paictl.openpai.org/code"
	// AnnotationSubmission is the key of the submission that made the job. A submission that is repeated because its response was lost has the
	// same key.
	AnnotationSubmission = "paictl.openpai.org/submission"

	// AnnotationTaskRole, on a pod template, is the role's name as the user wrote it.
	AnnotationTaskRole = "paictl.openpai.org/task-role"
	// AnnotationPorts, on a pod template, lists the labels of a task's ports with the number of ports for each label. It has OpenPAI's form:
	// {"schedulePortStart":15000,"schedulePortEnd":40000,"ports":{"ssh":{"count":1}}}.
	AnnotationPorts = "rest-server/port-scheduling-spec"
)

// Finalizer delays the deletion of a Framework until its pods have ended and the Framework is archived. The controller adds the finalizer if the
// submission didn't.
const Finalizer = "paictl.openpai.org/archive"

// Values of AnnotationRuntime. With either value, the job has a headless Service.
const (
	// RuntimeV1 is the value for jobs that an earlier paictl submitted. The attempt's ConfigMap contains the addresses of all tasks, and the
	// job's own service account may watch it.
	RuntimeV1 = "v1"
	// RuntimeV2 is the value for jobs whose tasks request the addresses from the controller. The owner of their pods is the Framework itself, and
	// attempts don't have a ConfigMap.
	RuntimeV2 = "v2"
)

// OwnRuntime reports whether the job runtime runs in the pods of a Framework.
func (f *Framework) OwnRuntime() bool {
	r := f.Annotations[AnnotationRuntime]
	return r == RuntimeV1 || r == RuntimeV2
}

// OwnsPods reports whether a Framework is itself the owner of its pods. Otherwise the ConfigMap of the attempt is the owner.
func (f *Framework) OwnsPods() bool { return f.Annotations[AnnotationRuntime] == RuntimeV2 }

// PeersKey is the key in binaryData of the attempt's ConfigMap that holds the addresses of the tasks, as gzipped text of pkg/runtime/peers.
const PeersKey = "peers"

// PriorityTest is the default priority of jobs.
const PriorityTest = "test"

// PriorityOpportunistic is the priority of jobs that only use resources that no other job needs.
const PriorityOpportunistic = "oppo"

// Priorities returns all priorities, starting with the highest.
func Priorities() []string { return []string{"crit", "prod", PriorityTest, PriorityOpportunistic} }

// PriorityClass returns the name of the Kubernetes PriorityClass for a priority, which is crit, prod, test or oppo. The chart
// cluster-configuration installs these classes with the values that the scheduler uses.
func PriorityClass(priority string) string { return "pai-job-" + priority }

// FullName returns OpenPAI's name for the Framework of a job: USER~JOB.
func FullName(user, job string) string { return user + "~" + job }

// ObjectName returns the name of the Framework object for a job: the MD5 hash of the full name, in 32 hex digits.
func ObjectName(user, job string) string {
	sum := md5.Sum([]byte(FullName(user, job))) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// ConfigMapName returns the name of the ConfigMap for a Framework's attempt.
func ConfigMapName(framework string) string { return framework + "-attempt" }

// PodName returns the name of a task's pod. The name is the same for all attempts, so that pods of two attempts can't exist at the same time.
func PodName(framework, role string, index int32) string {
	return framework + "-" + role + "-" + strconv.Itoa(int(index))
}

// SpecSecretName returns the name of the Secret that holds the job runtime's spec, which contains the job's commands with the values of secrets.
func SpecSecretName(framework string) string { return framework + "-spec" }

// SpecKey is the key of the spec in the Secret SpecSecretName.
const SpecKey = "spec.json"

// FingerprintKey is another key in the Secret SpecSecretName. It holds the SHA-256 of the submitted text with its secrets. AnnotationConfigHash
// must not depend on the secrets, because more people can read annotations, so only the fingerprint distinguishes jobs that differ in their
// secrets.
const FingerprintKey = "job.sha256"

// RegistrySecretName returns the name of the Secret with the credentials for the job's container registries.
func RegistrySecretName(framework string) string { return framework + "-regcred" }
