package api

import "github.com/openpai/paictl/pkg/access"

// Where the job controller is found, in the namespace of the platform.
const (
	// Service is the controller's service, and PortName its port of the HTTP API.
	Service  = "job-controller"
	PortName = "http"
	// ConfigMap says what a submission must know of the cluster. The chart job-controller makes it.
	ConfigMap = "job-configuration"
	// Lease is held by the replica that leads; its holder is HOST:PORT of that replica's HTTP API.
	Lease = "job-controller"
	// TokenSecret holds what opens the HTTP API, under TokenKey; it is sent in TokenHeader. The scheduler answers to it, too.
	TokenSecret = access.TokenSecret
	// AuditTokenSecret holds what opens the audit, also under TokenKey; it is sent in AuditTokenHeader. Who has only the other token can't
	// read who did what, nor write it.
	AuditTokenSecret = "job-audit-token"
	AuditTokenHeader = "X-Pai-Audit-Token"
	TokenKey         = access.TokenKey
	TokenHeader      = access.TokenHeader
	// RulesConfigMap is the administrator's set of failure rules, and RulesKey its key.
	RulesConfigMap = "job-failure-rules"
	RulesKey       = "rules.yaml"
)

// Configuration is the ConfigMap's content.
type Configuration struct {
	RuntimeImage  string // reference of the image pai-runtime
	PullSecret    string // in the namespace of jobs; empty where the registry asks for no password
	SchedulerName string // pai-scheduler, or empty where only Kubernetes' own scheduler runs
	CodeURL       string // under which pods get code: CodeURL + "/" + sha256
	PeersURL      string // under which pods wait for the addresses of their job: PeersURL + "/" + the Framework's name
	DNSDomain     string // cluster.local
	Namespace     string // of the jobs
	Claims        bool   // tasks get their GPUs by claims
}

// Keys of the ConfigMap.
const (
	keyRuntimeImage  = "runtime-image"
	keyPullSecret    = "pull-secret"
	keySchedulerName = "scheduler-name"
	keyCodeURL       = "code-url"
	keyPeersURL      = "peers-url"
	keyDNSDomain     = "dns-domain"
	keyNamespace     = "job-namespace"
	keyClaims        = "gpu-claims"
)

// ReadConfiguration reads the data of the ConfigMap. What is not there stays empty.
func ReadConfiguration(data map[string]string) Configuration {
	return Configuration{
		RuntimeImage: data[keyRuntimeImage], PullSecret: data[keyPullSecret], SchedulerName: data[keySchedulerName],
		CodeURL: data[keyCodeURL], PeersURL: data[keyPeersURL], DNSDomain: data[keyDNSDomain], Namespace: data[keyNamespace], Claims: data[keyClaims] == "true",
	}
}
