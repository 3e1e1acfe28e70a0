// Package kube connects to the API of one Kubernetes cluster. In: a kubeconfig file and the name of a context, or the environment. Out: a connection
// that contains the name of the cluster, and errors with remedies.
package kube

import (
	"errors"
	"io/fs"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/openpai/paictl/pkg/hint"
)

// SystemNamespace contains the configuration and the platform's services. JobNamespace contains the users' jobs.
const (
	SystemNamespace = "pai-system"
	JobNamespace    = "pai-jobs"
)

// Options choose the cluster. An empty Kubeconfig means KUBECONFIG or ~/.kube/config, as in kubectl; an empty Context means the current context.
type Options struct {
	Kubeconfig string
	Context    string
}

// Cluster is a connection to the API of one cluster. It never sends requests to other clusters.
type Cluster struct {
	Config  *rest.Config
	Client  kubernetes.Interface
	Context string // the kubeconfig's context
	Server  string // https://10.0.0.1:6443
	// Raw is the kubeconfig with only this context, for libraries that need a kubeconfig.
	Raw api.Config
	// Program means that a program of the platform sends the requests, not a person with a kubeconfig. Explain then returns errors unchanged.
	Program bool
}

// Open reads the kubeconfig and prepares a connection to its cluster. It doesn't send a request yet.
func Open(o Options) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	raw, err := rules.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(raw.Contexts) == 0 && !slices.ContainsFunc(rules.GetLoadingPrecedence(), exists):
		return nil, hint.Errorf(remedyKubeconfig, "there is no kubeconfig %s", kubeconfigName(o))
	case err != nil:
		return nil, explainKubeconfig(err, o)
	}
	return open(raw, o.Context, rules, o)
}

// FromConfig prepares a connection to the cluster of the kubeconfig's current context, for a kubeconfig that isn't in a file. It doesn't send a
// request yet.
func FromConfig(raw *api.Config) (*Cluster, error) {
	return open(raw, "", nil, Options{Kubeconfig: "of the machines"})
}

func open(raw *api.Config, name string, access clientcmd.ConfigAccess, o Options) (*Cluster, error) {
	if name == "" {
		name = raw.CurrentContext
	}
	if err := checkContext(raw, name, o); err != nil {
		return nil, err
	}
	loader := clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{}, access)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, explainKubeconfig(err, o)
	}
	// paictl sends few requests at a time, but the client's default limit of 5 per second would delay them noticeably.
	config.QPS, config.Burst = 100, 200
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return apiOnly{next} })
	config.Wrap(newConnection().wrap)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return patience{next, answerTimeout} })
	config.UserAgent = "paictl"
	// client-go would print the API server's warnings to stderr, over the progress display.
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(Protobuf(config))
	if err != nil {
		return nil, explainKubeconfig(err, o)
	}
	only := api.NewConfig()
	only.Clusters[raw.Contexts[name].Cluster] = raw.Clusters[raw.Contexts[name].Cluster]
	if user := raw.AuthInfos[raw.Contexts[name].AuthInfo]; user != nil {
		only.AuthInfos[raw.Contexts[name].AuthInfo] = user
	}
	only.Contexts[name], only.CurrentContext = raw.Contexts[name], name
	return &Cluster{Config: config, Client: client, Context: name, Server: config.Host, Raw: *only}, nil
}

// Protobuf returns a copy of the configuration whose clients request protobuf for Kubernetes' own kinds. Decoding protobuf takes a tenth of the time
// that JSON takes.
func Protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// Contexts returns the sorted names of the contexts in the kubeconfig, for shell completion. It returns nil if the kubeconfig can't be read.
func Contexts(o Options) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	return contextNames(raw)
}
