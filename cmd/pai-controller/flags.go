package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller"
	"github.com/openpai/paictl/pkg/kube"
)

type options struct {
	listen, codeListen    string
	kubeconfig            string
	namespace, system     string
	identity              string
	leaderElection, debug bool
	database, dsnFile     string
	accessFile            string
	workers, logBytes     int
	codeBytes, userBytes  int64
	qps                   float64
	ttl, keep, keepAudit  time.Duration
	auditRows             int64
	delivery              string
	claims                bool
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("pai-controller", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&o.listen, "listen", ":9097", "address of the API, and of /metrics, /healthz and /readyz")
	fs.StringVar(&o.codeListen, "code-listen", ":9098", "address where tasks fetch the code of their job, and nothing else")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; empty means the account of the pod")
	fs.StringVar(&o.namespace, "namespace", kube.JobNamespace, "namespace of the jobs")
	fs.StringVar(&o.system, "system-namespace", kube.SystemNamespace, "namespace of the lease and of the failure rules")
	fs.StringVar(&o.identity, "identity", "", "name of this replica in the lease; empty means $POD_IP, or the host name, and the port of --listen")
	fs.BoolVar(&o.leaderElection, "leader-election", true, "work only while this replica holds the lease")
	fs.StringVar(&o.accessFile, "access-file", "", "file with the password for /metrics; if empty, everyone may read them")
	fs.StringVar(&o.database, "database", "/var/lib/pai-controller/archive.db", "file of the archive, an SQLite database")
	fs.StringVar(&o.dsnFile, "dsn-file", "", "file with the DSN of a PostgreSQL database, which is the archive then")
	fs.IntVar(&o.workers, "workers", 64, "number of jobs that are reconciled at a time")
	fs.Float64Var(&o.qps, "qps", 400, "calls of the API server per second; twice as many in a burst")
	fs.DurationVar(&o.ttl, "ttl", 24*time.Hour, "time after which the Framework and the pods of a finished job are removed; the archive keeps the job")
	fs.DurationVar(&o.keepAudit, "keep-audit", 0, "time after which a record of the audit is removed; 0 means never")
	fs.Int64Var(&o.auditRows, "audit-rows", 0, "how many records of the audit are kept; 0 means all")
	fs.DurationVar(&o.keep, "keep", 0, "time after which a finished job is removed from the archive; 0 means never")
	fs.IntVar(&o.logBytes, "log-bytes", 1<<20, "maximum size of a task's log in the archive, which keeps its end; -1 keeps no logs")
	fs.Int64Var(&o.userBytes, "code-bytes-per-user", 2<<30, "maximum size of the code of one user; 0 means no limit")
	fs.Int64Var(&o.codeBytes, "code-bytes", 10<<30, "maximum size of the code of all jobs together; 0 means no limit")
	fs.BoolVar(&o.claims, "claims", false, "give tasks their GPUs by claims, which the agents of the machines serve")
	fs.StringVar(&o.delivery, "runtime-delivery", string(controller.DeliverAuto), "how the runtime is delivered to pods: image-volume, init-container, or auto: the first where all machines can")
	fs.BoolVar(&o.debug, "debug", false, "log each decision")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return o, o.complete()
}

// complete checks the options and sets the defaults that depend on environment variables.
func (o *options) complete() error {
	_, port, err := net.SplitHostPort(o.listen)
	if err != nil {
		return fmt.Errorf("--listen %q is not HOST:PORT", o.listen)
	}
	for name, d := range map[string]time.Duration{"--ttl": o.ttl, "--keep": o.keep, "--keep-audit": o.keepAudit} {
		if d < 0 {
			return fmt.Errorf("%s %s is negative", name, d)
		}
	}
	if o.auditRows < 0 {
		return fmt.Errorf("--audit-rows %d is negative", o.auditRows)
	}
	if _, err := controller.ParseDelivery(o.delivery); err != nil {
		return fmt.Errorf("--runtime-delivery: %w", err)
	}
	if o.workers < 1 || o.qps <= 0 {
		return fmt.Errorf("--workers %d and --qps %g must be above 0", o.workers, o.qps)
	}
	if o.logBytes == 0 {
		o.logBytes = -1 // no output was requested
	}
	if o.identity != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the host name: %w", err)
	}
	o.identity = net.JoinHostPort(cmp.Or(os.Getenv("POD_IP"), host), port)
	return nil
}

func (o *options) config() (*rest.Config, error) {
	if o.kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", o.kubeconfig)
}

// archive returns the options of the archive. It reads the DSN from a file, because the DSN contains a password.
func (o *options) archive() (archive.Options, error) {
	if o.dsnFile == "" {
		return archive.Options{Path: o.database, CodeLimit: o.codeBytes, CodeLimitPerUser: o.userBytes}, nil
	}
	text, err := os.ReadFile(o.dsnFile)
	if err != nil {
		return archive.Options{}, fmt.Errorf("read the DSN of the archive: %w", err)
	}
	dsn := strings.TrimSpace(string(text))
	if dsn == "" {
		return archive.Options{}, fmt.Errorf("%s is empty: it holds the DSN of the archive", o.dsnFile)
	}
	return archive.Options{DSN: dsn, Scratch: filepath.Dir(o.database), CodeLimit: o.codeBytes, CodeLimitPerUser: o.userBytes}, nil
}
