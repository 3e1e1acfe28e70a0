package api

import "github.com/openpai/paictl/pkg/httpserver/access"

// Names of the job controller's objects in the platform's namespace.
const (
	// Service is the controller's Service, and PortName is the name of its port for the HTTP API.
	Service  = "job-controller"
	PortName = "http"
	// ConfigMap holds the cluster's settings that a submission needs. The chart job-controller creates it.
	ConfigMap = "job-configuration"
	// Lease is held by the leading replica. The Lease's holder is HOST:PORT of the HTTP API of that replica.
	Lease = "job-controller"
	// TokenSecret holds the token for the HTTP API under TokenKey. Clients send the token in TokenHeader. The scheduler accepts this token, too.
	TokenSecret = access.TokenSecret
	// AuditTokenSecret holds the token for the audit, also under TokenKey. Clients send the token in AuditTokenHeader. With only the token of
	// TokenSecret, a client can neither read nor write the audit.
	AuditTokenSecret = "job-audit-token"
	AuditTokenHeader = "X-Pai-Audit-Token"
	TokenKey         = access.TokenKey
	TokenHeader      = access.TokenHeader
	// RulesConfigMap holds the administrator's failure rules under RulesKey.
	RulesConfigMap = "job-failure-rules"
	RulesKey       = "rules.yaml"
)

// Configuration is the content of ConfigMap.
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

// Keys of ConfigMap.
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

// ReadConfiguration converts the data of ConfigMap. If a key is missing, its field stays empty.
func ReadConfiguration(data map[string]string) Configuration {
	return Configuration{
		RuntimeImage: data[keyRuntimeImage], PullSecret: data[keyPullSecret], SchedulerName: data[keySchedulerName],
		CodeURL: data[keyCodeURL], PeersURL: data[keyPeersURL], DNSDomain: data[keyDNSDomain], Namespace: data[keyNamespace], Claims: data[keyClaims] == "true",
	}
}
