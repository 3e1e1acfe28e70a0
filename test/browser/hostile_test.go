package browser

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
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
	assert.Equal(t, 200, w.Ask("PUT", "/api/v3/jobs/bob/train/tags", w.tokens["bob"], string(tags)).Status)

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
	b.fine()
}
