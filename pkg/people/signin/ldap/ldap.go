// Package ldap checks passwords of people with a directory, and reads people's current data from the directory. In: the directory's address, the
// searches for people and groups, names and passwords. Out: identities for pkg/people/signin.
package ldap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/secret"
)

// Options configure the connection to a directory and the searches for people.
type Options struct {
	// Name is the directory's name in paictl's configuration.
	Name string
	// URL is ldaps://HOST[:PORT], or ldap://HOST[:PORT] with StartTLS.
	URL      string
	StartTLS bool
	// CA holds the PEM certificates of the CAs that may sign the directory's certificate. "" means the CAs of the system.
	CA string
	// BindDN and BindPassword are the credentials of the account that searches the directory.
	BindDN       string
	BindPassword secret.String
	Users        Users
	Groups       Groups
	Log          *slog.Logger // nil discards the log
}

// Users configures the search for people below Base, with Filter and the attribute Name.
type Users struct {
	Base, Filter string
	// Name is the attribute for the sign-in name. Subject is an attribute that never changes and is never reused for another person.
	Name, Subject string
	// Email and DisplayName are the attributes with the mail address and the displayed name. "" means that the directory has no such attribute.
	Email, DisplayName string
}

// Groups configures the search for the groups of a person below Base, with Filter and the attribute Member. Member holds the person's DN. If
// MemberValue is set, Member holds the value of that attribute of the person instead. Without a Base, people have no groups.
type Groups struct {
	Base, Filter        string
	Member, MemberValue string
	// Name is the attribute for the group's name.
	Name string
}

const (
	// patience limits the response time of a directory.
	patience = 10 * time.Second
	// most is the maximum number of simultaneous connections. Each sign-in opens a connection.
	most = 16
	// maxGroups is the maximum number of groups of one person. More groups are an error.
	maxGroups = 1000
)

// Directory is an LDAP directory. It implements signin.Password and signin.Checker.
type Directory struct {
	o     Options
	tls   *tls.Config
	slots chan struct{}
}

var (
	_ signin.Password = (*Directory)(nil)
	_ signin.Checker  = (*Directory)(nil)
)

// New returns a Directory. It checks the options as far as possible without a request.
func New(o Options) (*Directory, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Directory{o: o, tls: &tls.Config{MinVersion: tls.VersionTLS12}, slots: make(chan struct{}, most)}
	if o.CA != "" {
		d.tls.RootCAs = x509.NewCertPool()
		if !d.tls.RootCAs.AppendCertsFromPEM([]byte(o.CA)) {
			return nil, errors.New("ca: there is no certificate in it")
		}
	}
	for field, filter := range map[string]string{"users.filter": o.Users.Filter, "groups.filter": o.Groups.Filter} {
		if _, err := ldap.CompileFilter(filter); filter != "" && err != nil {
			return nil, fmt.Errorf("%s: %q is not an LDAP filter, such as (objectClass=person)", field, filter)
		}
	}
	return d, nil
}

// Name returns the directory's configured name.
func (d *Directory) Name() string { return d.o.Name }

// Refreshes returns false, because a directory can check a person without a refresh token.
func (d *Directory) Refreshes() bool { return false }

// SignIn finds the person with the given name, and checks the password by a bind. For a person who doesn't exist, it binds with a nonexistent DN, so
// that the response time is the same.
func (d *Directory) SignIn(ctx context.Context, name string, password secret.String) (*signin.Identity, error) {
	if password.Reveal() == "" { // directories accept a bind without a password as an anonymous one
		return nil, signin.ErrWrong
	}
	var id *signin.Identity
	err := d.session(ctx, func(c *ldap.Conn) error {
		entry, err := d.named(c, name)
		dn := strangers
		switch {
		case err == nil:
			dn = entry.DN
		case !errors.Is(err, errNone):
			return err
		}
		if wrong := c.Bind(dn, password.Reveal()); wrong != nil || entry == nil {
			return meaning(wrong)
		}
		if err := d.bind(c); err != nil { // people may not be able to see their groups
			return err
		}
		id, err = d.identity(c, entry)
		return err
	})
	return id, d.explain(err)
}

// strangers is the DN for the bind if the person doesn't exist.
const strangers = "cn=no-person-has-this-name"

// Check returns the directory's current data about a person, or signin.ErrGone if the person no longer exists in the directory.
func (d *Directory) Check(ctx context.Context, subject string, _ secret.String) (*signin.Identity, error) {
	var id *signin.Identity
	err := d.session(ctx, func(c *ldap.Conn) error {
		entry, err := d.person(c, d.o.Users.Subject, subject)
		if errors.Is(err, errNone) {
			return d.gone(c)
		}
		if err != nil {
			return err
		}
		id, err = d.identity(c, entry)
		return err
	})
	return id, d.explain(err)
}

// session opens a connection, binds with the search account, calls do with the connection, and closes the connection.
func (d *Directory) session(ctx context.Context, do func(*ldap.Conn) error) error {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c, err := ldap.DialURL(d.o.URL, ldap.DialWithDialer(&net.Dialer{Timeout: patience}), ldap.DialWithTLSConfig(d.tls))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	c.SetTimeout(patience)
	if d.o.StartTLS {
		host, err := hostOf(d.o.URL)
		if err != nil {
			return err
		}
		config := d.tls.Clone()
		config.ServerName = host
		if err := c.StartTLS(config); err != nil {
			return fmt.Errorf("begin TLS: %w", err)
		}
	}
	if err := d.bind(c); err != nil {
		return err
	}
	return do(c)
}

// bind binds a connection with the search account.
func (d *Directory) bind(c *ldap.Conn) error {
	if err := c.Bind(d.o.BindDN, d.o.BindPassword.Reveal()); err != nil {
		return fmt.Errorf("bind as %s: %w", d.o.BindDN, err)
	}
	return nil
}

// meaning converts the error of a person's bind. It returns signin.ErrWrong if the directory rejects the password or the person. It also returns
// ErrWrong for a nil error, because the bind of a nonexistent person must never succeed.
func meaning(err error) error {
	if err == nil || ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultInsufficientAccessRights,
		ldap.LDAPResultUnwillingToPerform, ldap.LDAPResultConstraintViolation, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInvalidDNSyntax) {
		return signin.ErrWrong
	}
	return err
}

// explain logs errors that don't concern one person, and wraps them in people.ErrUnavailable.
func (d *Directory) explain(err error) error {
	switch {
	case err == nil, errors.Is(err, signin.ErrWrong), errors.Is(err, signin.ErrGone), errors.Is(err, context.Canceled):
		return err
	}
	d.o.Log.Warn("a directory can't be reached", "provider", d.o.Name, "error", err.Error())
	return fmt.Errorf("%w: the directory %s can't be reached: %w", people.ErrUnavailable, d.o.Name, err)
}
