package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/test/tier"
)

// largeMachines is how many machines the map of the benchmark has, with eight GPUs each.
const largeMachines = 1000

// TestTheMapOfAThousandMachines prints figures of the page of machines in a large cluster: the time until it can be used, its size, the time from a change of a machine until the page shows it, and the frames per second while the
// pointer moves over the map. It asserts none of them, because they depend on the machine.
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
	b.fine()
}
