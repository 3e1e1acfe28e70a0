package api

import "time"

// Ways are how people sign in.
type Ways struct {
	// Password: with a user name and a password, also one of a directory.
	Password bool     `json:"password"`
	Issuers  []Issuer `json:"issuers"`
	// At is the address from which browsers go to an issuer.
	At string `json:"at,omitempty"`
}

// Issuer is an issuer of OpenID Connect.
type Issuer struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// Go is where a browser goes next.
type Go struct {
	To string `json:"to"`
}

// Program is a program on the machine of the browser, which waits at a loopback address.
type Program struct {
	Redirect  string `json:"redirect_uri"`
	State     string `json:"state"`
	Challenge string `json:"code_challenge"`
	Client    string `json:"client_id,omitempty"`
}

// Device is a sign-in of a program without a browser, as RFC 8628 has it.
type Device struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	// VerificationURI is the page for the person, VerificationComplete the same with the code in it.
	VerificationURI      string `json:"verification_uri"`
	VerificationComplete string `json:"verification_uri_complete"`
	ExpiresIn            int    `json:"expires_in"` // seconds
	Interval             int    `json:"interval"`   // seconds
}

// Waiting is a program that waits to be let in.
type Waiting struct {
	// Name is whom it would be signed in as.
	Name    string    `json:"name,omitempty"`
	Client  string    `json:"client"`
	Address string    `json:"address"`
	Began   time.Time `json:"began"`
	// Approval lets it in; it is good for five minutes.
	Approval string `json:"approval,omitempty"`
}

// Goal is what a browser signs in for: a page of this server, a program on its machine, or one that waits with a code.
type Goal struct {
	To      string   `json:"to,omitempty"`
	Program *Program `json:"program,omitempty"`
	Device  string   `json:"device,omitempty"`
}

// Arrival is where a browser goes next, or the program that waits.
type Arrival struct {
	To      string   `json:"to,omitempty"`
	Waiting *Waiting `json:"waiting,omitempty"`
}

// LetIn lets a program in, or refuses it. For that, Session is the refresh token of the caller's session.
type LetIn struct {
	Code    string `json:"code"`
	Allow   bool   `json:"allow"`
	Session string `json:"session,omitempty"`
}
