package browser

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/server/servertest"
)

// laptop is a public key.
const laptop = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGQIz31P/vE4m0JrBLGQ4C9cAuYkyI6MQ/b8tvGpHkpm ann@laptop"

func TestProfile(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.Person("pia", "speech", "vision")
	w.tokens["pia"] = w.SignIn("pia")
	b.signIn(w, "/profile", "pia")
	b.has(".pairs", "speech")
	b.has(".grants", "see the jobs of others")
	b.has(".panel", "No keys yet")

	b.fill(`input[name="displayName"]`, "Pia <b>P</b>")
	b.fill(`input[name="email"]`, "pia@example.org")
	b.press(".panel button", "Save")
	b.has(".who", "Pia <b>P</b>")
	assert.Equal(t, "pia@example.org", w.Do("GET", "/api/v3/users/pia", w.tokens["pia"], "").JSON()["email"])

	// The page sends only public keys to the server.
	for text, want := range map[string]string{
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn": "This is a private key",
		"ann@laptop":                 "begins with its type",
		laptop[:50]:                  "The key is incomplete",
		laptop + "\n" + laptop:       "on one line",
		"ssh-rsa" + laptop[11:]:      "The key is incomplete",
		"ssh-ed25519 not*base64 ann": "The key is incomplete",
	} {
		b.fill(`textarea[name="value"]`, text)
		b.press(".panel button", "Add key")
		b.has(".panel .bad", want)
	}
	b.fill(`textarea[name="value"]`, laptop)
	b.press(".panel button", "Add key")
	b.has(".entries", "ann@laptop")
	b.has(".entries", "SHA256:")
	b.run("document.querySelector('.entries button').click()")
	b.has("dialog[open]", "Remove the key ann@laptop?")
	b.press("dialog[open] button.primary", "Delete")
	b.has(".panel", "No keys yet")

	// A new token is shown once. It works until it is revoked.
	b.fill(`input[name="label"]`, "nightly")
	b.press(".panel button", "Create token")
	b.shows("document.querySelector('.made code')?.innerText.length > 20")
	text := script[string](t, b.ctx, "document.querySelector('.made code').innerText")
	assert.Equal(t, http.StatusOK, w.Do("GET", "/api/v3/jobs", text, "").Status)
	b.has(".rows", "read, submit")
	b.press(".made button", "Close")
	b.shows("!document.body.innerText.includes(" + quote(text) + ")")
	b.run("[...document.querySelectorAll('.rows tr')].find(e => e.innerText.includes('nightly')).querySelector('button').click()")
	b.has("dialog[open]", "Revoke nightly?")
	b.press("dialog[open] button.primary", "Revoke")
	b.shows("!document.querySelector('.rows').innerText.includes('nightly')")
	assert.Equal(t, http.StatusUnauthorized, w.Do("GET", "/api/v3/jobs", text, "").Status)
	b.has(".rows", "this session")
	b.narrow(w, "/profile")

	// For a wrong password, the page shows the server's message. A new password ends the session.
	b.fill(`input[name="old"]`, "wrong")
	b.fill(`input[name="new"]`, "another horse battery")
	b.fill(`input[name="again"]`, "another horse")
	b.press(".panel button", "Change password")
	b.has(".panel .bad", "The new passwords differ")
	b.fill(`input[name="again"]`, "another horse battery")
	b.press(".panel button", "Change password")
	b.has(".problem", "IncorrectPasswordError")
	b.fill(`input[name="old"]`, servertest.Password)
	b.press(".panel button", "Change password")
	b.do(chromedp.WaitVisible(chromedp.CSS(`input[name="username"]`)))
	b.shows("location.pathname === '/sign-in'")
	assert.Equal(t, http.StatusOK, w.Do("POST", "/api/v2/authn/basic/login", "", `{"username":"pia","password":"another horse battery"}`).Status)
}
