package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/test/tier"
)

// largeMachines is the number of machines on the map in the benchmark. Each machine has eight GPUs.
const largeMachines = 1000

// liveJobs is the number of running jobs in the benchmark.
const liveJobs = 10_000

// TestTenThousandLiveJobs prints measurements of the list of jobs in a large cluster: the time until the list can be used, its size, the time for a
// search, and the time from a change of a job until the page shows the change. It asserts no limits, because the measurements depend on the machine.
func TestTenThousandLiveJobs(t *testing.T) {
	tier.More(t, "a browser and 10,000 jobs")
	if os.Getenv("PAICTL_BENCH") == "" {
		t.Skip("it takes minutes to make 10,000 jobs: set PAICTL_BENCH=1")
	}
	w := newWorld(t)
	w.machines(largeMachines)
	w.live(liveJobs)
	b := openTab(t) // its time is limited
	b.signIn(w, "/profile", "ann")
	open := func(path, shows string) (time.Duration, float64) {
		begun := time.Now()
		b.do(chromedp.Navigate(w.URL + path))
		b.shows(shows)
		return time.Since(begun), script[float64](t, b.ctx, "performance.getEntries().reduce((n, e) => n + (e.transferSize || 0), 0)")
	}
	list, size := open("/jobs", "document.querySelectorAll('tr[data-job]').length === 50")
	home, _ := open("/", "document.querySelector('tr[data-job]')")
	machines, _ := open("/machines", "document.querySelector('tr[data-machine]')")
	_, _ = open("/jobs", "document.querySelectorAll('tr[data-job]').length === 50")

	begun := time.Now()
	b.run("[...document.querySelectorAll('.search input')].forEach(e => { e.value = 'live-7777'; e.dispatchEvent(new Event('input', {bubbles: true})) })")
	b.shows("document.querySelectorAll('tr[data-job]').length === 1")
	search := time.Since(begun)

	begun = time.Now()
	w.finish("ann", "live-7777", 0, "Succeeded", "")
	b.shows("document.querySelector('tr[data-job]').innerText.includes('Succeeded')")
	pixel := time.Since(begun)
	fmt.Printf("%d live jobs, %d machines: list %s, %.0f kB, home %s, machines %s, search %s, a change after %s\n", liveJobs, largeMachines,
		list.Round(time.Millisecond), size/1000, home.Round(time.Millisecond), machines.Round(time.Millisecond), search.Round(time.Millisecond), pixel.Round(time.Millisecond))
}

// live creates n running jobs of ann, live-0 and so on. The jobs are copies of one job that she submits.
func (w *world) live(n int) {
	w.t.Helper()
	w.submit("ann", "live-0", "speech", 1)
	w.run("ann", "live-0")
	config := rest.CopyConfig(w.cluster.Config)
	config.QPS = -1 // a test makes many
	client, err := dynamic.NewForConfig(config)
	require.NoError(w.t, err)
	jobs := client.Resource(fv1.Resource).Namespace(kube.JobNamespace)
	first := fv1.ObjectName("ann", "live-0")
	made, err := jobs.Get(w.t.Context(), first, metav1.GetOptions{})
	require.NoError(w.t, err)
	text, err := json.Marshal(made.Object)
	require.NoError(w.t, err)
	var group errgroup.Group
	group.SetLimit(16)
	for i := 1; i < n; i++ {
		group.Go(func() error {
			name := fmt.Sprintf("live-%d", i)
			job := &unstructured.Unstructured{}
			if err := json.Unmarshal(bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(first), []byte(fv1.ObjectName("ann", name))), []byte("live-0"), []byte(name)), &job.Object); err != nil {
				return err
			}
			unstructured.RemoveNestedField(job.Object, "metadata", "uid")
			unstructured.RemoveNestedField(job.Object, "metadata", "finalizers")
			job.SetResourceVersion("")
			status := job.Object["status"]
			made, err := jobs.Create(w.t.Context(), job, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			made.Object["status"] = status
			_, err = jobs.UpdateStatus(w.t.Context(), made, metav1.UpdateOptions{})
			return err
		})
	}
	w.t.Cleanup(func() { // all at once would take longer than a request may
		ctx := context.WithoutCancel(w.t.Context())
		for i := range n {
			group.Go(func() error {
				return jobs.Delete(ctx, fv1.ObjectName("ann", fmt.Sprintf("live-%d", i)), metav1.DeleteOptions{})
			})
		}
		require.NoError(w.t, group.Wait())
	})
	require.NoError(w.t, group.Wait())
}

// TestTheMapOfAThousandMachines prints measurements of the Machines page in a large cluster: the time until the page can be used, its size, the time
// from a change of a machine until the page shows the change, and the frames per second while the pointer moves over the map. It asserts no limits,
// because the measurements depend on the machine.
func TestTheMapOfAThousandMachines(t *testing.T) {
	tier.More(t, "a browser and 1,000 machines")
	b := openTab(t)
	w := newWorld(t)
	w.machines(largeMachines)
	b.signIn(w, "/jobs", "ann")
	open := func() time.Duration {
		begun := time.Now()
		b.do(chromedp.Navigate(w.URL + "/machines?by=owner"))
		b.shows("document.querySelector('tr[data-machine]')")
		return time.Since(begun)
	}
	first := open() // the server begins to follow the cluster
	second := open()
	bytes := script[float64](t, b.ctx, "performance.getEntries().reduce((n, e) => n + (e.transferSize || 0), 0)")

	nodes := w.cluster.Client.CoreV1().Nodes()
	n, err := nodes.Get(t.Context(), "gpu-2", metav1.GetOptions{})
	require.NoError(t, err)
	n.Spec.Unschedulable = true
	begun := time.Now()
	_, err = nodes.Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
	b.shows("document.querySelector('tr[data-machine=\"gpu-2\"]').innerText.includes('cordoned')")
	pixel := time.Since(begun)

	frames := script[float64](t, b.ctx, `new Promise(done => {
		const canvas = document.querySelector('.map canvas'), box = canvas.getBoundingClientRect(), begun = performance.now();
		let n = 0;
		const step = now => {
			if (now - begun > 3000) return done(n / (now - begun) * 1000);
			n++;
			canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + n * 7 % box.width, clientY: box.top + n * 3 % box.height, bubbles: true}));
			requestAnimationFrame(step);
		};
		requestAnimationFrame(step);
	})`)
	fmt.Printf("%d machines, %d GPUs: first page %s, again %s, %.0f kB, a change after %s, %.0f frames/s\n", largeMachines, largeMachines*gpusOfMachine, first.Round(time.Millisecond), second.Round(time.Millisecond), bytes/1000, pixel.Round(time.Millisecond), frames)
}
