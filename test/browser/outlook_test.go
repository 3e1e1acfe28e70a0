package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/kube"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestTheOutlookOfAJobIsBesideItsCheck(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	b.signIn(w, "/submit", "ann")
	b.shows("document.querySelector('.cm-content')")
	b.jobFile(exampleFile)
	b.has(".outlook", "Starts now on one machine: gpu-1.")
	b.has(".outlook", "The largest job of this shape that starts now: 6 × 1 GPUs.")
	b.has(".outlook", "GPU hours for each hour that it runs.")
	b.jobFile(strings.Replace(exampleFile, "instances: 1", "instances: 7", 1) + "extras: {maxDurationSec: 7200}\n")
	b.has(".outlook", "Would be number 3 of 5 in the queue of speech: Virtual cluster speech has 6 of 64 GPUs free")
	b.has(".outlook", "GPU hours for each run")
}

func TestWhatAPersonWritesIsKept(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	at := "/submit?template=" + w.templates()["Fine-tune BERT"]
	b.signIn(w, at, "ann")
	b.has(".cm-content", "finetune")
	b.shows("Object.keys(sessionStorage).length === 0") // the person has changed nothing
	b.run(remembers)

	// A secret that is typed into a field becomes part of the text that is sent. In the browser's storage, secrets of the file are masked.
	b.jobFile(tuning + "secrets:\n  token:\n  other: very-secret\n")
	b.fill(`input[name="secret-token"]`, "typed-secret")
	b.checks(tuning + "secrets:\n  token: typed-secret\n  other: very-secret\n")
	b.shows("Object.values(sessionStorage).some(text => text.includes(\"other: '******'\"))")
	stored := "/(typed|very)-secret/.test(JSON.stringify(sessionStorage) + JSON.stringify(localStorage) + location.href)"
	b.shows("!" + stored)

	// The person visits other pages and returns.
	b.press(".side a", "Jobs")
	b.shows("location.pathname === '/jobs'")
	b.run("history.back()")
	b.has(".cm-content", "very-secret")
	b.shows("document.querySelector('input[name=\"secret-token\"]').value === 'typed-secret'")
	b.press(".side a", "Submit")
	b.has(".nothing", "Start from the example")
	b.run("history.back()")
	b.has(".cm-content", "very-secret")

	// After a reload, the secrets are masked, and all other text is unchanged.
	b.leaves()
	b.do(chromedp.Navigate(w.URL+"/jobs"), chromedp.Navigate(w.URL+at))
	b.has(".note", "This is what you wrote here before.")
	b.has(".cm-content", "other: '******'")
	b.has(".note", "Secrets of the original are masked")
	b.do(chromedp.Click(chromedp.CSS(".cm-content"))) // the browser asks only people who have done something on the page
	b.press(".note button", "Start again without it")
	b.shows("document.querySelector('.cm-content').innerText.includes('finetune') && !document.querySelector('.cm-content').innerText.includes('******')")
	b.shows("!document.querySelector('.note')")

	// After the person has signed out, no draft remains in the browser.
	b.jobFile(tuning + "# mine\n")
	b.shows("Object.keys(sessionStorage).length === 1")
	b.signOut()
	b.shows("Object.keys(sessionStorage).length === 0")
}

// leaves confirms each dialog in which the browser asks whether to leave a page.
func (b *tab) leaves() {
	dialogs := chromedp.Events(b.ctx, page.JavascriptDialogOpening)
	go func() {
		for _, err := range dialogs {
			if err != nil {
				return
			}
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true}) // the page stays without it
		}
	}()
}

// claim creates a storage that exists until the test ends.
func (w *world) claim(name string) {
	w.t.Helper()
	claims := w.cluster.Client.CoreV1().PersistentVolumeClaims(kube.JobNamespace)
	_, err := claims.Create(w.t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		ctx := context.WithoutCancel(w.t.Context())
		require.NoError(w.t, claims.Delete(ctx, name, metav1.DeleteOptions{}))
		_, err := claims.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}) // no controller runs here that would remove them
		if !apierrors.IsNotFound(err) {
			require.NoError(w.t, err)
		}
	})
}

func TestFormsOfSecretsAndStorages(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	for _, name := range []string{"corpus", "models"} {
		w.claim(name)
	}
	w.Group("data", func(g *v1.GroupSpec) { g.Storages = []string{"corpus", "models"} })
	w.Person("sam", "speech", "data")
	w.tokens["sam"] = w.SignIn("sam")
	b.signIn(w, "/submit", "sam")
	b.shows("document.querySelector('.cm-content')")
	b.run(remembers)
	tick := func(name string) {
		b.t.Helper()
		b.shows("document.querySelector('input[name=\"storage-" + name + "\"]')")
		b.run("document.querySelector('input[name=\"storage-" + name + "\"]').click()")
	}
	for _, c := range []struct{ file, one, two string }{
		{"name: x\n", "name: x\nextras:\n  storages:\n    - name: corpus\n", "name: x\nextras:\n  storages:\n    - name: corpus\n    - name: models\n"},
		{"extras:\n  hostNetwork: false\nname: x", "extras:\n  storages:\n    - name: corpus\n  hostNetwork: false\nname: x\n", "extras:\n  storages:\n    - name: corpus\n    - name: models\n  hostNetwork: false\nname: x\n"},
		{"extras:\n  storages: []\n", "extras:\n  storages:\n    - name: corpus\n", "extras:\n  storages:\n    - name: corpus\n    - name: models\n"},
	} {
		b.jobFile(c.file)
		b.checks(c.file)
		tick("corpus")
		b.checks(c.one)
		tick("models")
		b.checks(c.two)
		tick("models")
		b.checks(c.one)
	}
	const own = "extras:\n  storages:\n  # mine\n  - name: models\n    mountPath: /models # here\n  - {name: other}\n"
	b.jobFile(own)
	b.checks(own)
	b.shows("document.querySelector('input[name=\"storage-models\"]').checked && !document.querySelector('input[name=\"storage-corpus\"]').checked")
	tick("models")
	b.checks("extras:\n  storages:\n  # mine\n  - {name: other}\n")
	b.jobFile("extras: {storages: [{name: corpus}]}\n")
	b.has(".storages", "only the editor can change")
	b.shows("document.querySelector('input[name=\"storage-corpus\"]').disabled")
}
