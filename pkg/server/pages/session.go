package pages

import (
	"errors"
	"net/http"
	"reflect"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Link is a link to a page of another service, for users who are granted Page. URL returns the page's address, or "" if the page has no address. The
// argument of URL is the host at which the browser has reached this server.
type Link struct {
	Name, Page string
	URL        func(host string) string
}

// sessions serves the requests of the sign-in page. The session of a browser is a cookie that scripts can't read.
type sessions struct{ links []Link }

func (s sessions) routes() []server.Route {
	const path = "/api/v3/session"
	return []server.Route{
		{Method: http.MethodPost, Path: path, Rule: "open", Summary: "Starts a browser's session with a password", Browser: true, In: reflect.TypeFor[beginIn](), Out: reflect.TypeFor[begun](), Errors: []string{"IncorrectPasswordError"}, Serve: s.begin},
		{Method: http.MethodGet, Path: path, Rule: "token.check", Summary: "Returns the owner of a browser's session, and the pages it may show", Browser: true, Out: reflect.TypeFor[session](), Serve: s.tell},
		{Method: http.MethodDelete, Path: path, Rule: "open", Summary: "Ends a browser's session and removes its cookie, even if the session has already ended", Browser: true, Out: reflect.TypeFor[struct{}](), Serve: s.end},
	}
}

type beginIn struct {
	Body struct {
		Username string        `json:"username"`
		Password secret.String `json:"password"`
		To       string        `json:"to"` // where the browser returns
	} `body:"json"`
	Client string `header:"User-Agent"`
}

// begun is the response to a sign-in. To is the next page for the browser.
type begun struct {
	Name string `json:"name"`
	To   string `json:"to"`
}

// maxClient limits the length of a browser's name that is stored with its token.
const maxClient = 64

func (s sessions) begin(c *server.Call) error {
	in := beginIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	switch {
	case in.Body.Username == "":
		return wire.Bad(`"username" is required`)
	case !in.Body.Password.IsSet():
		return wire.Bad(`"password" is required`)
	}
	got, err := c.Actions.SignIn(c.Context(), in.Body.Username, in.Body.Password, 0, in.Client[:min(len(in.Client), maxClient)])
	if err != nil {
		return err
	}
	if err := c.KeepSession(got.Token, got.Expires); err != nil {
		return err
	}
	return c.JSON(&begun{got.Name, server.Local(in.Body.To)})
}

// session describes a session. It contains the name of the user, and the pages that the user may open.
type session struct {
	Name  string     `json:"name"`
	Pages []pageLink `json:"pages"`
}

type pageLink struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

func (s sessions) tell(c *server.Call) error {
	me, err := c.Actions.WhoAmI()
	if err != nil {
		return err
	}
	out := &session{Name: me.Name, Pages: []pageLink{}}
	for _, l := range s.links {
		if at := l.URL(c.Request.Host); at != "" && c.Actions.MaySee(l.Page) == nil {
			out.Pages = append(out.Pages, pageLink{l.Name, at})
		}
	}
	c.Writer.Header().Set("Cache-Control", "no-store")
	return c.JSON(out)
}

// end ends the session. If the session can't be ended, end keeps the cookie, so that the person can try to sign out again.
func (s sessions) end(c *server.Call) error {
	if err := c.Actions.Logout(c.Context()); err != nil && !errors.Is(err, rules.ErrGuest) {
		return err
	}
	c.DropSession()
	return c.JSON(struct{}{})
}
