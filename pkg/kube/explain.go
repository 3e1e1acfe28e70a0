package kube

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// RemedyOther is the remedy for errors that arise if the kubeconfig is for another cluster than the user expects.
const RemedyOther = "to use another cluster, give --kubeconfig and --context"

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
	cluster := raw.Clusters[ctx.Cluster]
	if cluster == nil {
		return hint.Errorf(remedyKubeconfig, "context %q of %s names a cluster %q that is not in it", name, kubeconfigName(o), ctx.Cluster)
	}
	if scheme, _, ok := strings.Cut(cluster.Server, "://"); ok && scheme != "https" && scheme != "http" {
		return hint.Errorf("write https://HOST:PORT there, or "+remedyKubeconfig, "the cluster %q of %s has a server that isn't reached over https: %s", ctx.Cluster, kubeconfigName(o), secret.Address(cluster.Server))
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
	if env := os.Getenv("KUBECONFIG"); o.Kubeconfig == "" && env != "" {
		return env + " (KUBECONFIG)"
	}
	return cmp.Or(o.Kubeconfig, "~/.kube/config")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// explainKubeconfig explains a mistake in a kubeconfig, or in a file that the kubeconfig names.
func explainKubeconfig(err error, o Options) error {
	if notKubeconfig(err) {
		return hint.Errorf(remedyKubeconfig, "%s is not a kubeconfig", kubeconfigName(o))
	}
	cause := err
	if all, ok := errors.AsType[utilerrors.Aggregate](err); ok { // clientcmd's aggregate has no Unwrap method
		cause = errors.Join(all.Errors()...)
	}
	if file, ok := errors.AsType[*fs.PathError](cause); ok {
		return hint.Errorf("correct the path in the kubeconfig, or "+remedyKubeconfig, "the kubeconfig %s names a file that can't be read: %w", kubeconfigName(o), file)
	}
	return hint.Wrap(fmt.Errorf("read the kubeconfig %s: %w", kubeconfigName(o), err), remedyKubeconfig)
}

// notKubeconfig reports whether err says that a file was read but isn't a kubeconfig. client-go describes such a file with its own types.
func notKubeconfig(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{"unmarshal", "yaml: ", "couldn't get version/kind", "no kind ", "strict decoding", "json: "}, func(s string) bool { return strings.Contains(text, s) })
}

// Explain adds advice for the user to an error of the API. It returns nil, errors of other causes and errors that already have advice unchanged.
func (c *Cluster) Explain(err error) error {
	if err == nil || c.Program || hint.Of(err) != "" {
		return err
	}
	name := fmt.Sprintf("the cluster of context %s (%s)", c.Context, c.Server)
	sent, failed := errors.AsType[*url.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case apierrors.IsUnauthorized(err):
		return hint.Wrap(fmt.Errorf("%s does not accept these credentials: %w", name, err), remedyKubeconfig)
	case apierrors.IsForbidden(err):
		return hint.Wrap(err, "use a kubeconfig of an administrator of the cluster (--kubeconfig, --context)")
	case strings.HasPrefix(c.Server, "http://") && apierrors.IsBadRequest(err) && apierrors.IsUnexpectedServerError(err): // Go's HTTPS servers respond like this
		return hint.Wrap(fmt.Errorf("%s: %w", name, err), "write https:// in the address of the server in the kubeconfig; "+RemedyOther)
	case failed:
		return unreachable(name, sent.Err)
	}
	return err
}

// unreachable explains why a request got no response. It treats an unknown error as an error of the connection.
func unreachable(name string, err error) error {
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, wrongName := errors.AsType[x509.HostnameError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case errors.Is(err, errPage):
		return hint.Errorf("check the address of the server in the kubeconfig, and proxies on the way; "+RemedyOther, "%s: %w", name, err)
	case authority:
		return hint.Errorf("if the cluster is a new one or has new authorities, get its kubeconfig: paictl cluster kubeconfig -p DIR; "+RemedyOther,
			"%s has a certificate that the authority in the kubeconfig didn't sign: %w", name, err)
	case wrongName:
		return hint.Errorf("correct the address of the server in the kubeconfig, or get another: paictl cluster kubeconfig -p DIR", "%s has a certificate for other names: %w", name, err)
	case certificate:
		return hint.Errorf("compare the clocks; show the certificates with: paictl cluster certs list -p DIR", "%s has a certificate that isn't valid: %w", name, err)
	case record, strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // net/http replaces the error
		return hint.Errorf("correct the address and the port of the server in the kubeconfig; "+RemedyOther, "%s doesn't answer over https: %w", name, err)
	}
	if plugin, ok := strings.CutPrefix(err.Error(), "getting credentials: "); ok { // client-go has no type for this error
		plugin, _, _ = strings.Cut(plugin, "\n")
		return hint.Errorf("install or repair the program that the kubeconfig names under exec, or sign in with it; or "+remedyKubeconfig, "get credentials for %s: %s", name, plugin)
	}
	return hint.Wrap(fmt.Errorf("%s does not answer: %w", name, err), "check with: paictl cluster status -p DIR; "+RemedyOther)
}

// errPage is the error for a web page that arrives instead of an API server's response.
var errPage = errors.New("a web page was answered, which no API server does")

// apiOnly rejects web pages, because client-go would describe them in terms of its decoders. It accepts the web pages of services behind the API
// server's proxy.
type apiOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t apiOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && !strings.Contains(req.URL.Path, "/proxy") {
		_ = resp.Body.Close()
		return nil, errPage
	}
	return resp, err
}
