package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/test/tier"
)

// The map contains the names of only those jobs that the person may see. The page is updated when the cluster changes.
func TestTheMapOfTheGPUs(t *testing.T) {
	tier.More(t, "a browser")
	b := openTab(t)
	w := newWorld(t)
	w.machines(3)
	w.submit("ann", "train", "speech", 4)
	w.run("ann", "train")
	step := func(b *tab, key string) {
		b.run("document.querySelector('.map canvas').focus()")
		b.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '" + key + "', bubbles: true}))")
	}
	b.signIn(w, "/machines?by=owner", "ann")
	b.has(".numbers", "2 of 3 machines ready")
	b.has(".numbers", "4 of 24 GPUs used")
	step(b, "ArrowRight")
	b.has(".map-words", "ann/train")
	b.has(".legend", "ann 4")
	step(b, "Enter")
	b.has(".drawer", "NVIDIA")
	b.has(".drawer a", "ann/train")
	b.shows("location.search.includes('machine=gpu-1')")
	b.press(".drawer button", "")
	b.has("tr[data-machine=gpu-3]", "Not ready")

	nodes := w.cluster.Client.CoreV1().Nodes()
	n, err := nodes.Get(t.Context(), "gpu-2", metav1.GetOptions{})
	require.NoError(t, err)
	n.Spec.Unschedulable = true
	n, err = nodes.Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
	b.has("tr[data-machine=gpu-2]", "cordoned")
	n.Status.Conditions[0].Status = corev1.ConditionFalse
	_, err = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
	b.has(".numbers", "1 of 3 machines ready")
	b.run("URL.createObjectURL = b => { b.text().then(t => window.saved = t); return '' }")
	b.press(".segments button", "With problems")
	b.press(".top button", "CSV")
	b.shows("window.saved?.startsWith('name,state,cordoned,') && window.saved.includes('\\r\\ngpu-3,NotReady,false,') && !window.saved.includes('gpu-1,')")

	b = openTab(t)
	b.signIn(w, "/machines?by=owner", "vic")
	b.has(".legend", "Held by someone 4")
	step(b, "ArrowRight")
	b.has(".map-words", "Held by someone")
	b.shows("!document.body.innerText.includes('train') && !document.body.innerText.includes('speech')")
	b.do(chromedp.Navigate(w.URL + "/queue"))
	b.has(".queue", "vic/segment")
	b.run("URL.createObjectURL = b => { b.text().then(t => window.saved = t); return '' }")
	b.press(".top button", "CSV")
	b.shows("window.saved?.startsWith('position,job,user,') && window.saved.includes('\\r\\n1,vic/segment,vic,16,')")
	b.shows("!document.body.innerText.includes('speech')")
}
