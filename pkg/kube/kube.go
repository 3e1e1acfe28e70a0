// Package kube opens the API of one Kubernetes cluster.
// In: a kubeconfig file and the name of a context, or the environment. Out: a
// connection that names the cluster it belongs to, and errors with remedies.
package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/openpai/paictl/pkg/hint"
)

// SystemNamespace holds the configuration and the platform's services; JobNamespace the
// users' jobs.
const (
	SystemNamespace = "pai-system"
	JobNamespace    = "pai-jobs"
)

// Options choose the cluster. Empty fields mean what KUBECONFIG, ~/.kube/config and their
// current context say, as for kubectl.
type Options struct {
	Kubeconfig string
	Context    string
}

// Cluster is a connection to the API of one cluster. No other cluster is ever asked.
type Cluster struct {
	Config  *rest.Config
	Client  kubernetes.Interface
	Context string // the kubeconfig's context
	Server  string // https://10.0.0.1:6443
	// Raw is the kubeconfig with only this context in it, for libraries that want one.
	Raw api.Config
	// Program: a program of the platform asks, and no person with a kubeconfig. Explain leaves its errors as they are.
	Program bool
}

// Open reads the kubeconfig. It does not ask the cluster anything yet.
func Open(o Options) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil, explainKubeconfig(err, o)
	}
	return open(raw, o.Context, rules, o)
}

// FromConfig opens the cluster of the current context of a kubeconfig that isn't in a file. It doesn't send a request
// yet.
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
	// paictl's own concurrency is small; the client's default of 5 per second would be felt.
	config.QPS, config.Burst = 100, 200
	config.Wrap(newConnection().wrap)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return patience{next, answerTimeout} })
	config.UserAgent = "paictl"
	// client-go would print the API server's warnings to stderr, over the progress display.
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(Protobuf(config))
	if err != nil {
		return nil, fmt.Errorf("open the cluster of context %s: %w", name, err)
	}
	only := api.NewConfig()
	only.Clusters[raw.Contexts[name].Cluster] = raw.Clusters[raw.Contexts[name].Cluster]
	if user := raw.AuthInfos[raw.Contexts[name].AuthInfo]; user != nil {
		only.AuthInfos[raw.Contexts[name].AuthInfo] = user
	}
	only.Contexts[name], only.CurrentContext = raw.Contexts[name], name
	return &Cluster{Config: config, Client: client, Context: name, Server: config.Host, Raw: *only}, nil
}

// Protobuf returns a copy of the configuration whose clients of Kubernetes' own kinds ask for protobuf, which takes a
// tenth of the time of JSON to decode.
func Protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// Contexts lists the contexts of the kubeconfig, for completion.
func Contexts(o Options) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	return contextNames(raw)
}

const remedyKubeconfig = "get one with: paictl cluster kubeconfig -p DIR; or name a file with --kubeconfig or KUBECONFIG; for jobs, sign in instead: paictl login https://HOST"

func checkContext(raw *api.Config, name string, o Options) error {
	switch {
	case len(raw.Contexts) == 0:
		return hint.Errorf(remedyKubeconfig, "%s names no cluster", kubeconfigName(o))
	case name == "":
		return hint.Errorf("choose one with --context: "+strings.Join(contextNames(raw), ", "), "%s has no current context", kubeconfigName(o))
	}
	ctx := raw.Contexts[name]
	if ctx == nil {
		return hint.Errorf("there are: "+strings.Join(contextNames(raw), ", "), "%s has no context %q", kubeconfigName(o), name)
	}
	if raw.Clusters[ctx.Cluster] == nil {
		return hint.Errorf(remedyKubeconfig, "context %q of %s names a cluster %q that is not in it", name, kubeconfigName(o), ctx.Cluster)
	}
	return nil
}

func contextNames(raw *api.Config) []string {
	var out []string
	for name := range raw.Contexts {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func kubeconfigName(o Options) string {
	switch {
	case o.Kubeconfig != "":
		return o.Kubeconfig
	case os.Getenv("KUBECONFIG") != "":
		return os.Getenv("KUBECONFIG")
	}
	return "~/.kube/config"
}

func explainKubeconfig(err error, o Options) error {
	if errors.Is(err, fs.ErrNotExist) {
		return hint.Errorf(remedyKubeconfig, "there is no kubeconfig %s", kubeconfigName(o))
	}
	if notKubeconfig(err) {
		return hint.Errorf(remedyKubeconfig, "%s is not a kubeconfig", kubeconfigName(o))
	}
	return hint.Wrap(fmt.Errorf("read the kubeconfig %s: %w", kubeconfigName(o), err), remedyKubeconfig)
}

// notKubeconfig reports whether a file could be read, and what is in it could not. client-go reports that in terms of its types.
func notKubeconfig(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{"unmarshal", "yaml: ", "couldn't get version/kind", "no kind ", "strict decoding", "json: "}, func(s string) bool { return strings.Contains(text, s) })
}

// Explain adds advice for the user to an error of the API. It returns other errors and nil
// as they are.
func (c *Cluster) Explain(err error) error {
	if err == nil || c.Program || hint.Of(err) != "" {
		return err
	}
	name := fmt.Sprintf("the cluster of context %s (%s)", c.Context, c.Server)
	var netErr net.Error
	var urlErr *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case apierrors.IsUnauthorized(err):
		return hint.Wrap(fmt.Errorf("%s does not accept these credentials: %w", name, err), remedyKubeconfig)
	case apierrors.IsForbidden(err):
		return hint.Wrap(err, "use a kubeconfig of an administrator of the cluster (--kubeconfig, --context)")
	case errors.As(err, &urlErr) && (errors.As(err, &netErr) || isRefused(err)):
		return hint.Wrap(fmt.Errorf("%s does not answer: %w", name, urlErr.Err),
			"check with: paictl cluster status -p DIR; to use another cluster, give --kubeconfig and --context")
	case errors.As(err, &urlErr):
		return hint.Wrap(fmt.Errorf("%s: %w", name, urlErr.Err), "to use another cluster, give --kubeconfig and --context")
	}
	return err
}

func isRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}
