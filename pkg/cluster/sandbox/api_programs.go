package sandbox

import (
	"cmp"
	"context"
	_ "embed" // for kwok.yaml
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
)

//go:embed kwok.yaml
var kwokStages []byte

// apiLimit limits the time until the API is ready. It is long enough for a busy machine.
const apiLimit = 90 * time.Second

// serviceRange is the service network of an API-only sandbox. The addresses in this network don't work.
const serviceRange = "10.96.0.0/16"

type ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	API               int `json:"api"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
}

func (p ports) all() []int { return []int{p.Etcd, p.EtcdPeer, p.API, p.ControllerManager, p.Scheduler} }

// free reports whether all ports are set and unused.
func (p ports) free() bool {
	for _, port := range p.all() {
		l, err := net.Listen("tcp", loopback(port)) //nolint:noctx // it doesn't block
		if port == 0 || err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

// choosePorts returns free ports below the range that the kernel uses for outgoing connections. Other programs are therefore unlikely to take these
// ports while the sandbox's programs restart. The search begins at a different port for each directory.
func choosePorts(dir string) (ports, error) {
	const first, blocks, size = 20000, 1200, 10
	h := fnv.New32a()
	_, _ = h.Write([]byte(dir))
	start := int(h.Sum32() % blocks)
	for i := range blocks {
		at := first + (start+i)%blocks*size
		p := ports{Etcd: at, EtcdPeer: at + 1, API: at + 2, ControllerManager: at + 3, Scheduler: at + 4}
		if p.free() {
			return p, nil
		}
	}
	return ports{}, fmt.Errorf("choose free ports: none from %d to %d", first, first+blocks*size)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func endpoint(port int) string { return "https://" + loopback(port) }

// programNames returns the names of the programs in the order in which they start.
func programNames() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
}

// bareNames returns the programs that a control plane without nodes needs. These programs start first.
func bareNames() []string { return programNames()[:2] }

// arguments returns the arguments of a program. It never puts secrets into arguments, only paths of files.
func (s *Sandbox) arguments(name string) []string {
	p, pki := s.state.API.Ports, s.pki
	kubeconfig := s.apiFile(name + ".kubeconfig")
	switch name {
	case "etcd":
		return []string{"--name=sandbox", "--data-dir=" + s.apiFile("etcd"), "--log-level=warn",
			"--listen-client-urls=" + endpoint(p.Etcd), "--advertise-client-urls=" + endpoint(p.Etcd),
			"--listen-peer-urls=" + endpoint(p.EtcdPeer), "--initial-advertise-peer-urls=" + endpoint(p.EtcdPeer),
			"--initial-cluster=sandbox=" + endpoint(p.EtcdPeer), "--force-new-cluster",
			"--client-cert-auth", "--trusted-ca-file=" + pki("etcd-ca.crt"), "--cert-file=" + pki("etcd.crt"), "--key-file=" + pki("etcd.key"),
			"--peer-client-cert-auth", "--peer-trusted-ca-file=" + pki("etcd-ca.crt"), "--peer-cert-file=" + pki("etcd.crt"), "--peer-key-file=" + pki("etcd.key"),
			// A temporary cluster doesn't have to survive a power failure, but thousands of nodes need disk space.
			"--unsafe-no-fsync", "--quota-backend-bytes=8589934592"}
	case "kube-apiserver":
		args := []string{"--etcd-servers=" + endpoint(p.Etcd), "--etcd-cafile=" + pki("etcd-ca.crt"), "--etcd-certfile=" + pki("apiserver-etcd-client.crt"),
			"--etcd-keyfile=" + pki("apiserver-etcd-client.key"), "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(p.API),
			// Disable the reconciler, because the API server rejects loopback addresses as endpoints of the service "kubernetes".
			"--endpoint-reconciler-type=none", "--cert-dir=" + s.apiFile(""), "--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
			"--client-ca-file=" + pki("ca.crt"), "--authorization-mode=Node,RBAC", "--anonymous-auth=false", "--allow-privileged=true", "--profiling=false",
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--service-account-key-file=" + pki("sa.pub"),
			"--service-account-signing-key-file=" + pki("sa.key"), "--service-cluster-ip-range=" + serviceRange}
		if s.encryption != "" {
			args = append(args, "--encryption-provider-config="+s.encryption)
		}
		return args
	case "kube-controller-manager":
		qps := cmp.Or(s.controllerQPS, s.lease/2)
		return []string{"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(p.ControllerManager), "--cert-dir=" + s.apiFile(name), "--leader-elect=false",
			"--use-service-account-credentials=true", "--service-account-private-key-file=" + pki("sa.key"), "--root-ca-file=" + pki("ca.crt"),
			"--cluster-signing-cert-file=" + pki("ca.crt"), "--cluster-signing-key-file=" + pki("ca.key"), "--profiling=false",
			"--node-monitor-grace-period=" + strconv.Itoa(s.lease*5/4) + "s",
			// The default limit of 20 requests per second is too low, because each new node needs four requests.
			"--kube-api-qps=" + strconv.Itoa(qps), "--kube-api-burst=" + strconv.Itoa(qps*3/2), "--controllers=" + cmp.Or(s.controllers, "*")}
	case "kube-scheduler":
		return []string{"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(p.Scheduler), "--cert-dir=" + s.apiFile(name), "--leader-elect=false", "--profiling=false"}
	default: // kwok
		return []string{"--kubeconfig=" + kubeconfig, "--config=" + s.apiFile("kwok.yaml"), "--cidr=10.128.0.0/9",
			"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=" + simulatedKey + "=" + simulatedValue, "--node-lease-duration-seconds=" + strconv.Itoa(s.lease)}
	}
}

func (s *Sandbox) apiFile(name string) string { return filepath.Join(s.dir, "api", name) }

func (s *Sandbox) pki(name string) string { return filepath.Join(s.dir, "api", "pki", name) }

func (s *Sandbox) programLog(name string) string { return s.apiFile(name + ".log") }

// launchProgram starts a program. The program survives the end of this process, unless the sandbox is bound. The returned channel is closed when
// the program ends.
func (s *Sandbox) launchProgram(name, path string) (<-chan struct{}, error) {
	log, err := os.OpenFile(s.programLog(name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(path, s.arguments(name)...) //nolint:noctx // it outlives this command
	// Set HOME, so that the program doesn't read the user's own settings in ~/.kube and ~/.kwok.
	cmd.Env = []string{"PATH=" + fullPath(""), "HOME=" + s.apiFile(""), mark(s.dir, name)}
	cmd.Dir = s.apiFile("")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = detached(0)
	if s.bound {
		cmd.SysProcAttr = attached()
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	return ended, nil
}

// waitAPI waits until the API server is ready. It returns an error if one of the programs ends.
func (s *Sandbox) waitAPI(ctx context.Context, client *kubernetes.Clientset, ended map[string]<-chan struct{}) error {
	ok, err := pollFor(ctx, apiLimit, func() (bool, error) {
		for name, done := range ended {
			select {
			case <-done:
				b, _ := os.ReadFile(s.programLog(name))
				return false, fmt.Errorf("start %s: it ended at once%s", name, lastLines(string(b), 2))
			default:
			}
		}
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err == nil && !ok {
		err = fmt.Errorf("start the API: it wasn't ready within %s; see %s", apiLimit, s.programLog("kube-apiserver"))
	}
	return err
}
