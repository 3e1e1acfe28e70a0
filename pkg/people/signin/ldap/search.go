package ldap

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"unicode/utf8"

	"github.com/go-ldap/ldap/v3"

	"github.com/openpai/paictl/pkg/people/signin"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// errNone means that a search found no person.
var errNone = errors.New("the directory has no such person")

// person finds the only entry with the given value of an attribute. It returns errNone for no entry, and another error for several entries.
func (d *Directory) person(c *ldap.Conn, attribute, value string) (*ldap.Entry, error) {
	u := d.o.Users
	if value == "" || len(value) > 256 {
		return nil, errNone
	}
	wanted := slices.DeleteFunc([]string{u.Name, u.Subject, u.Email, u.DisplayName, d.o.Groups.MemberValue}, func(a string) bool { return a == "" })
	found, err := c.Search(ldap.NewSearchRequest(u.Base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 2, int(patience.Seconds()), false,
		and(u.Filter, equals(attribute, d.raw(attribute, value))), wanted, nil))
	switch {
	case err != nil && !ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded):
		return nil, fmt.Errorf("search for a person: %w", err)
	case len(found.Entries) == 0:
		return nil, errNone
	case len(found.Entries) > 1 || err != nil:
		return nil, fmt.Errorf("%w: %s isn't one person's alone: below %s several have it", signin.ErrUnsaid, attribute, u.Base)
	}
	return found.Entries[0], nil
}

// gone returns the error for a person whom a search didn't find. It returns ErrGone only if the directory finds other people. Otherwise the search
// account may have lost its rights, or the directory may be empty.
func (d *Directory) gone(c *ldap.Conn) error {
	u := d.o.Users
	found, err := c.Search(ldap.NewSearchRequest(u.Base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 1, int(patience.Seconds()), false,
		and(u.Filter, fmt.Sprintf("(&(%s=*)(%s=*))", u.Name, u.Subject)), []string{"1.1"}, nil))
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded), err == nil && len(found.Entries) > 0:
		return signin.ErrGone
	case err != nil:
		return fmt.Errorf("search for people: %w", err)
	}
	return fmt.Errorf("%s can't find any person below %s", d.o.BindDN, u.Base)
}

// named finds the person who signs in with a name. Directories accept several spellings of one name, for example with spaces or wide letters. Outside
// the directory, these spellings would count as different people. So named accepts only the spelling in the directory, but ignores case.
func (d *Directory) named(c *ldap.Conn, name string) (*ldap.Entry, error) {
	entry, err := d.person(c, d.o.Users.Name, name)
	if err != nil {
		return nil, err
	}
	names := entry.GetEqualFoldAttributeValues(d.o.Users.Name)
	if len(names) == 0 {
		return nil, fmt.Errorf("%s is found by %s, but doesn't have it as an attribute: users.name must be the directory's name of the attribute, and readable", entry.DN, d.o.Users.Name)
	}
	if !slices.ContainsFunc(names, func(n string) bool { return v1.FoldName(n) == v1.FoldName(name) }) {
		return nil, errNone
	}
	return entry, nil
}

// identity returns the identity in a person's entry, including the person's groups.
func (d *Directory) identity(c *ldap.Conn, e *ldap.Entry) (*signin.Identity, error) {
	u := d.o.Users
	id := &signin.Identity{Provider: d.o.Name, Name: e.GetEqualFoldAttributeValue(u.Name), Subject: printed(e.GetEqualFoldRawAttributeValue(u.Subject))}
	if id.Subject == "" {
		return nil, fmt.Errorf("%w: %s has no attribute %s, by which people are known", signin.ErrUnsaid, e.DN, u.Subject)
	}
	if u.Email != "" {
		id.Email = e.GetEqualFoldAttributeValue(u.Email)
	}
	if u.DisplayName != "" {
		id.DisplayName = e.GetEqualFoldAttributeValue(u.DisplayName)
	}
	if d.o.Groups.Base == "" {
		return id, nil
	}
	var err error
	id.Groups, err = d.groups(c, e)
	return id, err
}

// groups returns the names of the groups of a person's entry.
func (d *Directory) groups(c *ldap.Conn, e *ldap.Entry) ([]string, error) {
	g := d.o.Groups
	member := e.DN
	if g.MemberValue != "" {
		if member = e.GetEqualFoldAttributeValue(g.MemberValue); member == "" {
			return nil, nil // without the attribute the person isn't in a group
		}
	}
	found, err := c.SearchWithPaging(ldap.NewSearchRequest(g.Base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 0, int(patience.Seconds()), false,
		and(g.Filter, equals(g.Member, member)), []string{g.Name}, nil), maxGroups)
	if err != nil {
		return nil, fmt.Errorf("search for groups: %w", err)
	}
	if len(found.Entries) > maxGroups {
		return nil, fmt.Errorf("%w: %s is in more than %d groups: narrow groups.filter", signin.ErrUnsaid, e.DN, maxGroups)
	}
	var out []string
	for _, entry := range found.Entries {
		if name := entry.GetEqualFoldAttributeValue(g.Name); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func and(filter, condition string) string {
	if filter == "" {
		return condition
	}
	return "(&" + filter + condition + ")"
}

// equals returns the filter that compares an attribute with a value, which it escapes.
func equals(attribute, value string) string {
	return "(" + attribute + "=" + ldap.EscapeFilter(value) + ")"
}

// hexPrefix begins a subject whose value isn't printable text, such as Active Directory's objectGUID.
const hexPrefix = "hex:"

// printed returns the value of an attribute as a subject: as text if printable, otherwise as hexPrefix and hexadecimal digits.
func printed(raw []byte) string {
	if !utf8.Valid(raw) || slices.ContainsFunc(raw, func(b byte) bool { return b < ' ' || b == 0x7f }) {
		return hexPrefix + hex.EncodeToString(raw)
	}
	return string(raw)
}

// raw converts the result of printed back to the attribute's value. It returns values of other attributes unchanged.
func (d *Directory) raw(attribute, value string) string {
	if attribute != d.o.Users.Subject {
		return value
	}
	if text, isHex := trimHex(value); isHex {
		return text
	}
	return value
}

func trimHex(value string) (string, bool) {
	if len(value) <= len(hexPrefix) || value[:len(hexPrefix)] != hexPrefix {
		return "", false
	}
	b, err := hex.DecodeString(value[len(hexPrefix):])
	return string(b), err == nil
}

// hostOf returns the host in the directory's address. The directory's certificate must be valid for this host.
func hostOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return u.Hostname(), nil
}
