package catalogue

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/test/runnable"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheTemplatesRun(t *testing.T) {
	runnable.Need(t, "python3")
	w := newWorld(t)
	for _, one := range []struct {
		what string
		run  func(*testing.T, *world)
	}{
		{"hello and sweep, as they are", asTheyAre},
		{"download, with an interrupted and a wrong file", downloads},
		{"PyTorch and DeepSpeed: torchrun knows its peers", torchrun},
		{"Horovod: mpirun logs in to each task", mpirun},
		{"TensorFlow: workers know each other", tensorflow},
		{"JAX: processes meet", jax},
		{"Ray: the workers join, and end with the head", ray},
		{"JupyterLab and TensorBoard: the ports and the token", tools},
		{"vLLM: its health is watched", vllm},
	} {
		t.Run(one.what, func(t *testing.T) { one.run(t, w) })
	}
}

// asTheyAre runs templates by name, without a change. This machine has all programs that their commands need.
func asTheyAre(t *testing.T, w *world) {
	w.succeeds(t, w.ann, "hello", "--template", "hello")
	w.says(t, w.ann, "hello", map[string][]string{"main[0]": {"Hello ann, this is main-0 of ann~hello"}})
	w.succeeds(t, w.operator, "trials", "--template", "sweep", "--name", "trials", "--set", "rates=0.9 0.1 0.5 0.01", "--set", "steps=100")
	w.says(t, w.operator, "trials", map[string][]string{
		"trial[1]": {"rate 0.1: x = 3.0000, loss = 0.0000"}, "trial[2]": {"rate 0.5: x = 3.0000, loss = 0.0000"}, "trial[3]": {"rate 0.01: x = 2.6021, loss = 0.1583"}})
	list := w.does(w.ann, "", "job", "template", "list")
	assert.Regexp(t, `(?m)^@catalogue/hello +everyone +1 +0 `, list)
	assert.Equal(t, list, w.does(w.operator, "", "job", "template", "list"))
}

// downloads runs the template download, with an HTTP server that closes its first connection too early.
func downloads(t *testing.T, w *world) {
	content := bytes.Repeat([]byte("paictl\n"), 200_000)
	sum := sha256.Sum256(content)
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sets/first file.txt":
			once.Do(func() {
				rw.Header().Set("Content-Length", strconv.Itoa(len(content)))
				_, _ = rw.Write(content[:500_000])
				panic(http.ErrAbortHandler)
			})
			http.ServeContent(rw, r, "", time.Unix(0, 0), bytes.NewReader(content))
		case "/second":
			_, _ = rw.Write([]byte("small & <odd>\n"))
		default:
			http.NotFound(rw, r)
		}
	}))
	defer server.Close()
	file, folder := w.file(t, "download"), filepath.Join(w.Gates, "sets")
	args := func(name, urls, sums string) []string {
		return []string{file, "--name", name, "--set", "folder=" + folder, "--set", "urls=" + urls, "--set", "sha256=" + sums}
	}
	both := server.URL + "/sets/first%20file.txt " + server.URL + "/second?a=$HOME&b='"
	w.succeeds(t, w.ann, "both", args("both", both, "")...)
	log := strings.Join(w.log(w.ann, "both", "main[0]"), "\n")
	assert.Contains(t, log, "first file.txt: the connection ended after 500000 bytes; trying again\nfirst file.txt: continues at byte 500000\nfirst file.txt: 1400000 bytes\nsecond: 14 bytes")
	got, err := os.ReadFile(filepath.Join(folder, "first file.txt"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(content, got))
	parts, err := filepath.Glob(folder + "/*.part")
	require.NoError(t, err)
	assert.Empty(t, parts)

	first, _, _ := strings.Cut(both, " ")
	w.succeeds(t, w.ann, "again", args("again", first, hex.EncodeToString(sum[:]))...)
	w.says(t, w.ann, "again", map[string][]string{"main[0]": {"first file.txt: is complete"}})
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte("jobRetryCount: 3"), []byte("jobRetryCount: 0"), 1), 0o600))
	for name, c := range map[string]struct{ urls, sums, says string }{
		"wrong":   {server.URL + "/second", strings.Repeat("0", 64), "its SHA-256 is"},
		"few":     {both, strings.Repeat("0", 64), "the parameter sha256 has 1 sums for 2 addresses"},
		"missing": {server.URL + "/none", "", "HTTP Error 404"},
		"unnamed": {server.URL + "/", "", "the address must end in the name of a file"},
	} {
		w.fails(t, name, c.says, args(name, c.urls, c.sums)...)
	}
	assert.FileExists(t, filepath.Join(folder, "second"), "a wrong sum removes no file that exists")
}

// fails submits a job, waits until it has failed, and asserts that its log contains the reason.
func (w *world) fails(t *testing.T, name, says string, args ...string) {
	t.Helper()
	w.does(w.ann, "", append([]string{"job", "submit"}, args...)...)
	code, _ := w.runs(w.ann, "", "job", "wait", name)
	assert.NotZero(t, code, name)
	assert.Contains(t, w.does(w.ann, "", "job", "logs", name), says, name)
}

// torchrun runs the templates whose processes are started by torchrun.
func torchrun(t *testing.T, w *world) {
	for name, call := range map[string]string{"pytorch-ddp": "/tmp/train.py --steps 9 --lr 0.05", "deepspeed": "/tmp/train.py --steps 9 --stage 2 --lr 0.01"} {
		w.succeeds(t, w.ann, name, w.file(t, name), "--set", "steps=9")
		for rank := range 2 {
			want := []string{"torchrun " + call, fmt.Sprintf("PET_NNODES=2 PET_NODE_RANK=%d PET_NPROC_PER_NODE=1 PET_RDZV_BACKEND=static PET_MASTER_PORT=29500", rank), "met [0, 1]"}
			if name == "deepspeed" {
				want = append([]string{"pip -m pip install --quiet deepspeed==0.17.6"}, want...)
			}
			w.says(t, w.ann, name, map[string][]string{fmt.Sprintf("worker[%d]", rank): want})
		}
	}
}

// mpirun runs the templates that use the host network. In this test, all tasks share the network of this machine, so each task has a different port
// for SSH.
func mpirun(t *testing.T, w *world) {
	runnable.Need(t, "ssh")
	w.succeeds(t, w.operator, "horovod", w.file(t, "horovod", "hostNetwork: true"))
	w.says(t, w.operator, "horovod", map[string][]string{"worker[0]": {
		"mpirun --allow-run-as-root --hostfile /usr/local/pai/hostfile -np 2 --bind-to none --map-by slot -x PATH -x LD_LIBRARY_PATH --mca pml ob1 --mca btl ^openib python /tmp/train.py --steps 200 --lr 0.01",
		"worker-0 has slots=1, is task 0 of 2 and has 1 program",
		"worker-1 has slots=1, is task 1 of 2 and has 1 program",
	}})
}

// addresses returns the addresses of the pods of one of ann's jobs. The keys consist of role and index.
func (w *world) addresses(t *testing.T, name string) map[string]string {
	t.Helper()
	list, err := w.Cluster.Client.CoreV1().Pods(kube.JobNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: v1.LabelFramework + "=" + v1.ObjectName("ann", name)})
	require.NoError(t, err)
	out := map[string]string{}
	for i := range list.Items {
		p := &list.Items[i]
		out[p.Annotations[v1.AnnotationTaskRole]+p.Labels[v1.LabelTaskIndex]] = p.Status.PodIP
	}
	return out
}

func tensorflow(t *testing.T, w *world) {
	w.succeeds(t, w.ann, "tensorflow", w.file(t, "tensorflow"))
	at := w.addresses(t, "tensorflow")
	workers := at["worker0"] + ":15000 " + at["worker1"] + ":15000"
	w.says(t, w.ann, "tensorflow", map[string][]string{
		"worker[0]": {"tensorflow: worker 0 of " + workers, "met [0, 1]"}, "worker[1]": {"tensorflow: worker 1 of " + workers, "met [0, 1]"}})
}

func jax(t *testing.T, w *world) {
	w.succeeds(t, w.ann, "jax", w.file(t, "jax"))
	w.says(t, w.ann, "jax", map[string][]string{
		"worker[0]": {"jax: process 0 of 2, port 29500", "met [0, 1]"}, "worker[1]": {"jax: process 1 of 2, port 29500", "met [0, 1]"}})
}

func ray(t *testing.T, w *world) {
	w.succeeds(t, w.ann, "ray", w.file(t, "ray"), "--set", "calls=7")
	at := w.addresses(t, "ray")
	host, err := os.Hostname()
	require.NoError(t, err)
	w.says(t, w.ann, "ray", map[string][]string{"head[0]": {
		"ray start --head --node-ip-address " + at["head0"] + " --port 6379 --dashboard-host 127.0.0.1 --dashboard-port 8265 --num-cpus 4 --num-gpus 0", host + ": 7 calls", "ray stop"}})
	for i := range 2 {
		log := w.log(w.ann, "ray", fmt.Sprintf("worker[%d]", i))
		assert.Equal(t, "ray start --address "+at["head0"]+":6379 --node-ip-address "+at[fmt.Sprintf("worker%d", i)]+" --num-cpus 4 --num-gpus 1 --block", log[0])
	}
}

func tools(t *testing.T, w *world) {
	folder := filepath.Join(w.Gates, "my notebooks")
	require.NoError(t, os.Mkdir(folder, 0o777))
	w.succeeds(t, w.ann, "jupyter", w.file(t, "jupyter"), "--set", "folder="+folder)
	w.says(t, w.ann, "jupyter", map[string][]string{"notebook[0]": {"jupyter lab --no-browser --ip 127.0.0.1 --port 8888", "in " + folder + " with the token " + secret}})
	w.succeeds(t, w.ann, "tensorboard", w.file(t, "tensorboard"), "--set", "logs=/data/a b")
	w.says(t, w.ann, "tensorboard", map[string][]string{"board[0]": {"tensorboard --logdir /data/a b --host 127.0.0.1 --port 6006"}})
}

// vllm runs the template vllm. It waits until the template has detected that vLLM is healthy, makes vLLM unhealthy, and waits until the template has
// detected that, too.
func vllm(t *testing.T, w *world) {
	w.does(w.ann, "", "job", "submit", w.file(t, "vllm"), "--set", "healthSeconds=0.1", "--set", "cache=/tmp/my models")
	var log []string
	require.Eventually(t, func() bool {
		if code, _ := w.runs(w.ann, "", "job", "wait", "vllm", "--for", "running"); code != 0 {
			return false
		}
		log = w.log(w.ann, "vllm", "server[0]")
		return strings.HasPrefix(log[len(log)-1], "ready")
	}, patience, 100*time.Millisecond)
	address := net.JoinHostPort(w.addresses(t, "vllm")["server0"], "15000")
	assert.Equal(t, []string{
		"vllm serve Qwen/Qwen2.5-0.5B-Instruct --host 0.0.0.0 --port 15000 --tensor-parallel-size 1 --max-model-len 4096",
		"with the key " + secret + " and the cache /tmp/my models", "ready: http://" + address + "/v1"}, log)
	require.NoError(t, os.WriteFile(filepath.Join(w.Gates, "sick"), nil, 0o600))
	require.Eventually(t, func() bool {
		return strings.Contains(w.does(w.ann, "", "job", "logs", "vllm", "--attempt", "0"), "vLLM no longer answers")
	}, patience, 100*time.Millisecond)
	w.does(w.ann, "", "job", "stop", "vllm", "--yes")
}
