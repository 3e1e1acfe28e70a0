// Package spec defines the data that a submission passes to the runtime inside a job's pods: the commands with the values of
// secrets and parameters, the roles, the plugins. It is stored in a Secret, one per job. In: nothing. Out: types, and Decode,
// which returns an error for unknown fields.
package spec

import "encoding/json"

// Version is the version of the spec.
const Version = 1

// MaxCode is the maximum size of an archive of code that is submitted with a job, in bytes.
const MaxCode = 256 << 20

// Paths in a task's container.
const (
	// Home is the folder of the runtime, its files, and the code and logs of plugins.
	Home = "/usr/local/pai"
	// Runtime is the path of the runtime. It is a copy that the init container made, or a link to ImageRuntime.
	Runtime = Home + "/runtime"
	// InitContainer is the name of the init container that copies the runtime.
	InitContainer = "init"
	// Image is the mount path of the runtime's image if the cluster can mount images. ImageRuntime is the path of the program
	// in that image.
	Image        = "/usr/local/pai-image"
	ImageRuntime = Image + "/pai-runtime"
	// File is the path of the spec, on a volume with the job's Secret.
	File = "/usr/local/pai-spec/spec.json"
	// Rules is the path of the failure rules, on a volume with the ConfigMap. The kubelet updates the file when the ConfigMap
	// changes.
	Rules = "/usr/local/pai-rules/rules.yaml"
	// RulesConfigMap is the name of the ConfigMap with the failure rules, in the namespace of jobs.
	RulesConfigMap = "runtime-exit-spec-configuration"
	// TerminationLog is the path of the file for the exit report.
	TerminationLog = "/tmp/pai-termination-log"
)

// Spec describes one job to its tasks.
type Spec struct {
	Version        int    `json:"version"`
	Framework      string `json:"framework"` // name of the object
	User           string `json:"user"`
	Job            string `json:"job"`
	VirtualCluster string `json:"virtualCluster"`
	Roles          []Role `json:"roles"` // in the order of the job file
	// Gang reports whether every task waits until all tasks of the job have an address.
	Gang bool `json:"gang"`
	// BarrierTimeoutSec is how long a task waits for the other tasks before it exits with code 251. 0 means 600.
	BarrierTimeoutSec int `json:"barrierTimeoutSec,omitempty"`
	// HostNetwork reports whether tasks use the addresses of their machines. On the host network, each task's ports are in
	// [PortStart, PortEnd) and are computed from the pod's UID (peers.HostPorts). Otherwise, each task has its own address, and
	// all tasks have the same ports.
	HostNetwork bool `json:"hostNetwork,omitempty"`
	PortStart   int  `json:"portStart,omitempty"`
	PortEnd     int  `json:"portEnd,omitempty"`
	// GracePeriodSec is the time between SIGTERM and SIGKILL. The pod's own grace period is a few seconds longer.
	GracePeriodSec int `json:"gracePeriodSec"`
	// CheckpointDir is a folder on the job's storage that the next attempt can also read. It is "" if the job has no such
	// folder.
	CheckpointDir string `json:"checkpointDir,omitempty"`
	// Code is a folder that was submitted with the job, or nil.
	Code *Code `json:"code,omitempty"`
	// PeersURL is a URL prefix for the addresses of all tasks in a gang: PeersURL + "/" + Framework. It is empty in jobs that
	// an earlier paictl submitted. The addresses of their tasks are in a ConfigMap.
	PeersURL string `json:"peersURL,omitempty"`
	// Domain is the suffix of the tasks' domain names, ROLE-INDEX.DOMAIN.
	Domain string `json:"domain,omitempty"`
}

// Role describes one task role of the job.
type Role struct {
	Name         string `json:"name"`   // the name in the job file
	Object       string `json:"object"` // the name in the Framework: [a-z0-9]+
	Instances    int    `json:"instances"`
	GPU          int    `json:"gpu"`
	CPU          int    `json:"cpu"`
	MemoryMB     int    `json:"memoryMB"`
	ShmMB        int    `json:"shmMB"` // 0 if the job file doesn't set it
	MinFailed    int    `json:"minFailed"`
	MinSucceeded int    `json:"minSucceeded"`
	Ports        []Port `json:"ports"` // by label
	// Command is the script with all references replaced. Shell runs it.
	Command string   `json:"command"`
	Shell   []string `json:"shell,omitempty"` // default: bash or sh, with errexit, nounset and pipefail if it supports them
	// Exec is a program with arguments that runs without a shell. It is an alternative to Command.
	Exec    []string `json:"exec,omitempty"`
	Plugins []Plugin `json:"plugins,omitempty"`
}

// Port requests a number of ports for a label.
type Port struct {
	Label string `json:"label"`
	Count int    `json:"count"`
}

// Plugin is a runtime plugin of a role. Plugins run in the order of the list.
type Plugin struct {
	Name          string          `json:"name"` // cmd, ssh, tensorboard, git, teamwise_storage
	IgnoreFailure bool            `json:"ignoreFailure,omitempty"`
	Parameters    json.RawMessage `json:"parameters,omitempty"`
}

// Code is a gzipped tar archive, identified by its checksum.
type Code struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // size of the archive in bytes
	Dir    string `json:"dir"`  // where it is unpacked; also the commands' working directory
}
