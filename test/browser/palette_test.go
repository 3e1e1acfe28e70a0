package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A person finds a job with a few letters, changes the job, and is notified when it ends.
func TestThePaletteNotificationsAndChangesOfAJob(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.submit("ann", "train-bert", "speech", 1)
	w.run("ann", "train-bert")
	b.signIn(w, "/", "ann")
	b.has(".jobs", "train-bert")
	b.ctrl("k")
	b.shows("document.activeElement.closest('.palette')")
	b.keys("bert")
	b.has(".palette [aria-selected=true]", "train-bert")
	b.keys(kb.Enter)
	b.shows("location.pathname === '/jobs/ann/train-bert' && !document.querySelector('dialog[open]')")

	b.press(".tags button", "")
	b.shows("document.activeElement.name === 'tag'")
	b.keys("good" + kb.Enter)
	b.has(".tags .tag", "good")
	b.press(".tags .tag button", "")
	b.shows("document.querySelector('.tags') && !document.querySelector('.tags .tag')")

	b.menu("Change the number of tasks")
	b.fill("dialog[open] input[name=tasks]", "3")
	b.run("document.querySelector('dialog[open] button.primary').click()")
	b.has("dialog[open] .problem", "gang")
	b.press("dialog[open] button", "Cancel")

	// The test's browser doesn't support notifications, so the script simulates them.
	b.do(chromedp.Navigate(w.URL + "/"))
	b.has(".jobs", "train-bert")
	b.run("window.Notification = class { constructor(title, o) { window.told = title + ': ' + o.body } static permission = 'granted'; static requestPermission = async () => 'granted' }")
	b.press(".person button", "")
	b.press("[role=menuitem]", "Notify me when my jobs end")
	b.shows("localStorage.getItem('notify') === 'yes'")
	code := int32(0)
	w.Eventually("the notification of a job that ends", func() bool { // the page may not follow the jobs yet
		code = 1 - code
		w.finish("ann", "train-bert", code, "x", "")
		return script[bool](t, b.ctx, "!!window.told?.startsWith('train-bert: ')")
	})
}
