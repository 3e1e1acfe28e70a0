package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/server/settings"
)

// options holds the arguments of the program.
type options struct {
	settingsFile                  string
	settings                      *settings.Settings
	listen, proxyListen           string
	redirectListen, metricsListen string
	kubeconfig                    string
	namespace, system             string
	tls, accessFile, credentials  string
	history, scheduler            string
	identity                      string
	debug                         bool
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("pai-server", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&o.settingsFile, "settings", "", "file with the settings that the chart makes; empty means the defaults")
	fs.StringVar(&o.listen, "listen", ":8443", "address of the API, over HTTPS")
	fs.StringVar(&o.proxyListen, "proxy-listen", "", "address of the pages of other services, over HTTPS; empty means none")
	fs.StringVar(&o.redirectListen, "redirect-listen", "", "address without TLS that redirects to HTTPS; empty means none")
	fs.StringVar(&o.metricsListen, "metrics-listen", ":9099", "address of /metrics, /healthz and /readyz")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; empty means the account of the pod")
	fs.StringVar(&o.namespace, "namespace", kube.JobNamespace, "namespace of the jobs")
	fs.StringVar(&o.system, "system-namespace", kube.SystemNamespace, "namespace of the platform's services, and of the lease")
	fs.StringVar(&o.tls, "tls", "", "folder with the certificate and its key, tls.crt and tls.key; empty means one of the platform's own authority")
	fs.StringVar(&o.accessFile, "access-file", "", "file with the password of the platform's services: for /metrics, which everyone may read if it is empty, and for the services whose pages it proxies")
	fs.StringVar(&o.credentials, "credentials", "", "folder with the secrets of issuers and directories, each a file named by its key, such as signIn.ldap.lab.bindPassword")
	fs.StringVar(&o.history, "job-controller", "http://"+api.Service+"."+kube.SystemNamespace+":9097", "URL of the job controller; empty means through the API server")
	fs.StringVar(&o.scheduler, "scheduler", "http://scheduler."+kube.SystemNamespace+":9096", "URL of the scheduler; empty means through the API server")
	fs.StringVar(&o.identity, "identity", "", "name of this replica in the lease; empty means $POD_NAME, or the host name")
	fs.BoolVar(&o.debug, "debug", false, "log more")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return o, o.complete()
}

// complete checks the arguments, and sets the values that depend on the environment of the program.
func (o *options) complete() (err error) {
	for name, address := range map[string]string{"--listen": o.listen, "--proxy-listen": o.proxyListen, "--redirect-listen": o.redirectListen, "--metrics-listen": o.metricsListen} {
		if _, _, err := net.SplitHostPort(address); err != nil && (address != "" || name != "--redirect-listen" && name != "--proxy-listen") {
			return fmt.Errorf("%s %q is not HOST:PORT", name, address)
		}
	}
	if o.namespace != kube.JobNamespace {
		return fmt.Errorf("--namespace %q: jobs run in %s", o.namespace, kube.JobNamespace)
	}
	o.settings = settings.Default()
	if o.settingsFile != "" {
		if o.settings, err = settings.Read(o.settingsFile); err != nil {
			return err
		}
	}
	if o.identity == "" {
		o.identity = os.Getenv("POD_NAME")
	}
	if o.identity == "" {
		if o.identity, err = os.Hostname(); err != nil {
			return fmt.Errorf("read the host name: %w", err)
		}
	}
	return nil
}

// config returns the configuration of clients of the API server.
func (o *options) config() (*rest.Config, error) {
	if o.kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", o.kubeconfig)
}
