package api

import "github.com/openpai/paictl/pkg/httpserver/access"

// These names identify the job controller's objects in the platform's namespace.
const (
	// Service is the controller's service, and PortName its port of the HTTP API.
	Service  = "job-controller"
	PortName = "http"
	// ConfigMap holds the settings of the cluster that a submission needs. The chart job-controller makes it.
	ConfigMap = "job-configuration"
	// Lease is held by the replica that leads; its holder is HOST:PORT of that replica's HTTP API.
	Lease = "job-controller"
	// TokenSecret holds the token of the HTTP API under TokenKey. Clients send it in TokenHeader. The scheduler accepts it, too.
	TokenSecret = access.TokenSecret
	// AuditTokenSecret holds the token of the audit, also under TokenKey. Clients send it in AuditTokenHeader. A client that has only the
	// other token can neither read nor write the audit.
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
	PullSecret    string // in the namespace of jobs; empty if the registry needs no password
	SchedulerName string // pai-scheduler, or empty if the cluster has only Kubernetes' own scheduler
	CodeURL       string // under which pods get code: CodeURL + "/" + sha256
	PeersURL      string // under which pods wait for the addresses of their job: PeersURL + "/" + the Framework's name
	DNSDomain     string // cluster.local
	Namespace     string // the namespace of the jobs
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

// ReadConfiguration reads the data of the ConfigMap. Missing keys leave their fields empty.
func ReadConfiguration(data map[string]string) Configuration {
	return Configuration{
		RuntimeImage: data[keyRuntimeImage], PullSecret: data[keyPullSecret], SchedulerName: data[keySchedulerName],
		CodeURL: data[keyCodeURL], PeersURL: data[keyPeersURL], DNSDomain: data[keyDNSDomain], Namespace: data[keyNamespace], Claims: data[keyClaims] == "true",
	}
}
