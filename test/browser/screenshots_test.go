package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPagesAndTheirScreenshots opens all pages in the light and the dark color scheme, and on a phone. axe-core must find no serious problem on any
// page. If PAICTL_SCREENSHOTS names a folder, the test writes screenshots to the folder.
func TestPagesAndTheirScreenshots(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.fill()
	ids := w.templates()
	w.usage()
	w.copied()
	b.signIn(w, "/", "ann")
	for name, page := range map[string]struct{ path, shows, does string }{
		"home":     {"/", "document.querySelector('.vc') && document.querySelector('.jobs')", ""},
		"jobs":     {"/jobs", "document.querySelector('.jobs')", ""},
		"job":      {"/jobs/ann/wav2vec-large-960h", "document.querySelector('.sentence')", ""},
		"failed":   {"/jobs/ann/whisper-finetune", "document.querySelector('.sentence')", "document.querySelector('summary').click()"},
		"logs":     {"/jobs/ann/wav2vec-large-960h?tab=logs&task=Worker_1%5B0%5D", "document.querySelector('.screen .l') && document.querySelector('.sentence')", ""},
		"machines": {"/machines?by=owner&machine=gpu-1", "document.querySelector('.drawer a')", ""},
		"wall":     {"/machines?by=health&view=wall", "document.querySelector('.map canvas')", ""},
		"queue":    {"/queue?vc=speech", "document.querySelector('.queue tbody tr')", ""},
		"submit":   {"/submit?clone=bob/conformer-s", "document.querySelector('.verdict .good') && document.querySelector('.cm-content')", "document.querySelectorAll('.segments button')[0].click()"},
		"form":     {"/submit?clone=ann/copy-of-whole", "document.querySelector('.verdict') && document.querySelector('.cm-content')", "document.querySelectorAll('.segments button')[1].click()"},
		"config":   {"/jobs/ann/copy-of-whole?tab=config", "document.querySelector('.diff ins')", ""},

		"templates":    {"/templates", "document.querySelector('.template')", ""},
		"template":     {"/templates/" + ids["Fine-tune BERT"], "document.querySelector('.parameters')", ""},
		"template-use": {"/submit?template=" + ids["Fine-tune BERT"], "document.querySelector('.verdict .good')", ""},
		"template-new": {"/templates/new?job=ann/wav2vec-large-960h", "document.querySelector('.fields')", ""},
		"usage":        {"/usage", "document.querySelector('.chart svg')", ""},
		"profile":      {"/profile", "document.querySelector('.panel .rows') && document.querySelector('.pairs')", ""},
		"shell":        {"/jobs/ann/wav2vec-large-960h?tab=shell", "document.querySelector('[role=tabpanel] .empty button')?.click(), document.querySelector('.xterm-rows')?.innerText.includes('root@task')", ""},
	} {
		b.pictures(w, name, page.path, page.shows, page.does)
	}
}

// copied creates a job of ann that is a copy of another job.
func (w *world) copied() {
	w.t.Helper()
	submit := func(text string) {
		a := w.Do("POST", "/api/v3/jobs", w.tokens["ann"], text)
		require.Equal(w.t, http.StatusOK, a.Status, a.Body)
	}
	file := func(change func(string) string, more string) string {
		text, err := json.Marshal(change(strings.Replace(wholeJob, "{skuType: a100}", "{affinityGroupName: a}", 1)))
		require.NoError(w.t, err)
		return fmt.Sprintf(`{"text":%s,"file":"job.yaml"%s}`, text, more)
	}
	submit(file(func(s string) string { return s }, ""))
	submit(file(func(s string) string {
		return strings.NewReplacer("name: whole ", "name: copy-of-whole ", "instances: 2", "instances: 4", "echo one", "echo three").Replace(s)
	}, `,"clonedFrom":{"job":"ann/whole"}`))
}

// pictures examines a page, and writes screenshots in the light and the dark color scheme, and on a phone. It waits until the expression shows is
// true, runs the script does, and then waits until each of the expressions in after is true.
func (b *tab) pictures(w *world, name, path, shows, does string, after ...string) {
	b.t.Helper()
	folder, axe := os.Getenv("PAICTL_SCREENSHOTS"), axeCore(b.t)
	for how, size := range map[string][2]int64{"light": {1440, 900}, "dark": {1440, 900}, "phone": {390, 844}} {
		scheme := "light"
		if how == "dark" {
			scheme = how
		}
		b.do(chromedp.EmulateViewport(size[0], size[1]), prefers(scheme), chromedp.Navigate(w.URL+path))
		b.shows(shows)
		if does != "" {
			b.run(does)
		}
		for _, text := range after {
			b.shows(text)
		}
		b.accessible(axe, name+" "+how)
		if folder == "" {
			continue
		}
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		require.NoError(b.t, err)
		require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+"-"+how+".png"), picture, 0o600))
	}
}

// axeCore returns the script of axe-core, which finds accessibility problems. The test fails if npm can't download the script.
func axeCore(t *testing.T) string {
	t.Helper()
	const folder = "../../pkg/portal/web/node_modules/axe-core"
	out, err := exec.CommandContext(t.Context(), "sh", "../../hack/portal-types.sh").CombinedOutput()
	require.NoError(t, err, "axe-core must examine the pages, so install Node.js and npm, and let npm reach its registry:\n%s", out)
	text, err := os.ReadFile(filepath.Join(folder, "axe.min.js"))
	require.NoError(t, err)
	return string(text)
}

// accessible asserts that axe-core finds no serious problem on the page.
func (b *tab) accessible(axe, page string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](axe+";void 0"))
	require.NoError(b.t, err)
	found := script[[]string](b.t, b.ctx, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.filter(v => ["serious", "critical"].includes(v.impact)).map(v => v.id + ": " + v.nodes.slice(0, 4).map(n => n.target.join(" ") + " " + n.any.concat(n.all, n.none).map(c => c.message).join("; ").slice(0, 160)).join(" | ")))`)
	assert.Empty(b.t, found, page)
}

// prefers sets the color scheme that the operating system prefers.
func prefers(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	})
}
