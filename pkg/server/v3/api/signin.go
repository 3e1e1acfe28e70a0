package api

import "time"

// SignInMethods are the methods for signing in.
type SignInMethods struct {
	// Password reports whether people can sign in with a user name and a password, including the names and passwords of a directory.
	Password bool     `json:"password"`
	Issuers  []Issuer `json:"issuers"`
	// At is the address where browsers must be before they go to an issuer.
	At string `json:"at,omitempty"`
}

// Issuer is an issuer of OpenID Connect.
type Issuer struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// Go is the next address for a browser.
type Go struct {
	To string `json:"to"`
}

// Program is a program on the browser's machine that waits at a loopback address.
type Program struct {
	Redirect  string `json:"redirect_uri"`
	State     string `json:"state"`
	Challenge string `json:"code_challenge"`
	Client    string `json:"client_id,omitempty"`
}

// Device is a sign-in of a program without a browser, as RFC 8628 specifies.
type Device struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	// VerificationURI is the page for the person, and VerificationComplete is the same page with the code in its address.
	VerificationURI      string `json:"verification_uri"`
	VerificationComplete string `json:"verification_uri_complete"`
	ExpiresIn            int    `json:"expires_in"` // seconds
	Interval             int    `json:"interval"`   // seconds
}

// Waiting is a program that waits for a person's approval.
type Waiting struct {
	// Name is the person that the program would be signed in as.
	Name    string    `json:"name,omitempty"`
	Client  string    `json:"client"`
	Address string    `json:"address"`
	Began   time.Time `json:"began"`
	// Approval allows it to sign in; it is valid for five minutes.
	Approval string `json:"approval,omitempty"`
}

// Goal is the purpose of a browser's sign-in: a page of this server, a program on its machine, or one that waits with a code.
type Goal struct {
	To      string   `json:"to,omitempty"`
	Program *Program `json:"program,omitempty"`
	Device  string   `json:"device,omitempty"`
}

// Arrival is the next address for a browser, or the program that waits.
type Arrival struct {
	To      string   `json:"to,omitempty"`
	Waiting *Waiting `json:"waiting,omitempty"`
}

// LetIn allows or denies the sign-in of a program. To allow the program, Session must be the refresh token of the caller's session.
type LetIn struct {
	Code    string `json:"code"`
	Allow   bool   `json:"allow"`
	Session string `json:"session,omitempty"`
}
