package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Links, tags and logs may come from other people. A command to copy must not run another command, a downloaded table must not contain formulas, and
// a log must not exhaust the memory of the browser.
func TestTextsOfOtherPeople(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.submit("bob", "train", "speech", 1)
	w.run("bob", "train")
	tags, err := json.Marshal(map[string]any{"tags": []string{"x;=cmd|' /C calc'!A1", "=1+1", "y;\"=1+1", "z;＝1+1"}})
	if err != nil {
		t.Fatal(err)
	}
	assert.Equal(t, 200, w.Do("PUT", "/api/v3/jobs/bob/train/tags", w.tokens["bob"], string(tags)).Status)

	b.signIn(w, "/jobs?state=failed;touch%20/tmp/x&keyword=a%03%0Dtouch%20/tmp/x%0D'", "ann")
	copied := func() string {
		b.shows("document.querySelector('.top .menu button')")
		b.run("Object.defineProperty(navigator, 'clipboard', {configurable: true, value: {writeText: async t => { window.copied = t }}})")
		b.run("document.querySelector('.top .menu button').click()")
		b.press("[role=menuitem]", "Copy as paictl")
		b.shows("window.copied")
		return script[string](t, b.ctx, "window.copied")
	}
	assert.Equal(t, `paictl job list --all-users --state 'failed;touch /tmp/x' --keyword $'a\x03\x0dtouch /tmp/x\x0d\x27'`, copied())

	for _, word := range []string{"constructor", "toString", "__proto__"} {
		b.do(chromedp.Navigate(w.URL + "/jobs?state=" + word))
		b.has(".segments button[aria-pressed=true]", word)
	}

	b.do(chromedp.Navigate(w.URL + "/jobs"))
	b.has(".jobs", "train")
	b.run("URL.createObjectURL = b => { b.text().then(t => window.saved = t); return '' }")
	b.press(".top button", "CSV")
	b.shows("window.saved")
	assert.NotRegexp(t, `(?m)(^|[,;\t])["\s]*[=+@＝]`, script[string](t, b.ctx, "window.saved"))

	b.do(chromedp.Navigate(w.URL + "/jobs/bob/train?tab=logs"))
	b.shows("document.querySelector('.screen .l')")
	say := func(line string) {
		select {
		case w.lines <- line:
		case <-time.After(30 * time.Second):
			t.Fatal("no request follows the log")
		}
	}
	say(strings.Repeat("\x1b[1mx", 16_000))
	say("\x1b[32m\x1b[1mbright\x1b[22mgreen\x1b[0mplain")
	b.has(".screen", "brightgreenplain")
	b.shows("document.querySelector('.screen .bold.ansi2')")
	assert.Less(t, script[int](t, b.ctx, "[...document.querySelectorAll('.screen .l *')].reduce((n, e) => n + e.className.length + 1, 0)"), 1<<20, "the classes of one line")
	for range 700 {
		say(strings.Repeat("z", 50_000))
	}
	say("the end")
	b.has(".screen", "the end")
	assert.Less(t, script[int](t, b.ctx, "document.querySelector('.screen').textContent.length"), 8<<20)
}

// Texts that people, tasks and machines choose are shown as they are. No page treats them as HTML.
func TestTextsAreNotMarkup(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.machines(1)
	const markup = `<img src=x onerror="window.hacked=1">`
	nodes := w.cluster.Client.CoreV1().Nodes()
	n, err := nodes.Get(t.Context(), "gpu-1", metav1.GetOptions{})
	require.NoError(t, err)
	n.Status.Conditions[0].Message = "container runtime is down " + markup
	_, err = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
	w.submit("bob", "train", "speech", 1)
	assert.Equal(t, 200, w.Do("PUT", "/api/v3/jobs/bob/train/tags", w.tokens["bob"], `{"tags":["<img src=x onerror=hacked()>"]}`).Status)
	w.finish("bob", "train", 1, "<img src=x>", "the last line "+markup)

	b.signIn(w, "/jobs/bob/train", "ann")
	b.has("main", "<img src=x onerror=")
	for _, page := range []string{"/jobs?user=", "/jobs/bob/train?tab=attempts", "/jobs/bob/train?tab=events", "/jobs/bob/train?tab=configuration", "/machines", "/machines?q=" + url.QueryEscape(markup), "/queue", "/"} {
		b.do(chromedp.Navigate(w.URL + page))
		b.shows("document.querySelector('main h1, main .problem')")
		assert.False(t, script[bool](t, b.ctx, "!!window.hacked || !!document.querySelector('img[src=x]')"), page)
	}
}

// A page of another site can't show the portal in a frame, where a person could be made to click in it.
func TestOtherSitesCannotFrameThePortal(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	b.signIn(w, "/", "ann")
	other := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(out, `<iframe src="%s/jobs"></iframe>`, w.URL)
	}))
	t.Cleanup(other.Close)
	b.expected = "frame-ancestors 'none'"
	b.do(chromedp.Navigate(other.URL))
	require.Eventually(t, func() bool { return strings.Contains(strings.Join(b.console(), "\n"), b.expected) }, 30*time.Second, 50*time.Millisecond, "%v", b.console())
}
