package notify

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// Config is the configuration of notifications.
type Config struct {
	// Cluster is the name of the cluster that messages contain.
	Cluster  string    `json:"cluster,omitempty"`
	SMTP     SMTP      `json:"smtp"`
	Webhooks []Webhook `json:"webhooks"`
	// WebhookNetworks holds the networks inside the site that webhooks may use. Webhooks in other networks inside the site are rejected.
	WebhookNetworks []string `json:"webhookNetworks"`
	// WebhookProxy is the address of the proxy for webhooks. Empty means no proxy.
	WebhookProxy string `json:"webhookProxy"`
	// Administrators holds the mail addresses of the receivers of notices about machines.
	Administrators []string `json:"administrators"`
	// PersonalWebhooks allows people to have their own webhooks.
	PersonalWebhooks bool `json:"personalWebhooks"`
	// Required lists the kinds of notices that people can't turn off for their own jobs.
	Required []peoplev1.NoticeEvent `json:"required"`
	// WeeklyReport sends Administrators a weekly report of GPU hours.
	WeeklyReport bool `json:"weeklyReport"`
	// ClusterNetworks holds the networks of the cluster's pods and services. Webhooks can't reach these networks, even if WebhookNetworks contains
	// them.
	ClusterNetworks []string `json:"clusterNetworks,omitempty"`
	// PerHour is the maximum number of messages to one receiver within an hour. The last of these messages contains all waiting notices.
	PerHour int `json:"perHour"`
}

// SMTP is the configuration of the mail server.
type SMTP struct {
	// Host is the name of the mail server. Empty means that no mail is sent.
	Host string `json:"host"`
	Port int    `json:"port"`
	TLS  TLS    `json:"tls"`
	// CA holds the PEM certificates of the CA that signed the server's certificate. Empty means the CAs of the system.
	CA       string        `json:"ca"`
	From     string        `json:"from"`
	Username string        `json:"username"`
	Password secret.String `json:"password"`
}

// TLS is how the connection to a mail server is encrypted.
type TLS string

// Values of TLS.
const (
	TLSStart    TLS = "starttls"
	TLSImplicit TLS = "implicit"
	TLSNone     TLS = "none"
)

// Webhook is a chat or another program that receives messages.
type Webhook struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	// SecretURL is the address of the webhook. Everyone with this address can write to the chat.
	SecretURL secret.String `json:"secretUrl"`
	// SigningSecret signs requests to Feishu and DingTalk robots that require a signature.
	SigningSecret secret.String `json:"signingSecret"`
	// Events selects the subjects of notices that the webhook receives. Empty means all subjects.
	Events []Subject `json:"events"`
	// Groups selects notices about jobs whose owner is in one of these groups; empty means the jobs of all people. Notices about machines aren't
	// affected.
	Groups []string `json:"groups"`
}

// Type is the format of the requests that a webhook expects.
type Type string

// Types of webhooks.
const (
	TypeGeneric  Type = "generic"
	TypeSlack    Type = "slack"
	TypeTeams    Type = "teams"
	TypeFeishu   Type = "feishu"
	TypeDingTalk Type = "dingtalk"
)

// Types returns all types of webhooks.
func Types() []Type { return []Type{TypeGeneric, TypeSlack, TypeTeams, TypeFeishu, TypeDingTalk} }

// Subject is the kind of target that a notice is about.
type Subject string

// The subjects.
const (
	SubjectJobs     Subject = "jobs"
	SubjectMachines Subject = "machines"
)

// Enabled reports whether any channel is configured.
func (c *Config) Enabled() bool {
	return c.SMTP.Host != "" || len(c.Webhooks) > 0 || c.PersonalWebhooks
}

// keys returns the keys of all receivers that the configuration lists.
func (c *Config) keys() (out []string) {
	for _, address := range c.Administrators {
		out = append(out, Receiver{Address: address}.Key())
	}
	for i := range c.Webhooks {
		out = append(out, Receiver{Webhook: c.Webhooks[i].Name}.Key())
	}
	return out
}

// Read decodes and checks a configuration. It reads the secrets from files in the folder credentials. The path of a setting determines the name of
// the file. If credentials is empty, the configuration has no secrets.
func Read(data []byte, credentials string) (*Config, error) {
	c := &Config{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, err
	}
	if err := c.secrets(credentials); err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range c.Check() {
		errs = append(errs, p)
	}
	return c, errors.Join(errs...)
}

func (c *Config) secrets(folder string) error {
	if folder == "" {
		return nil
	}
	read := func(into *secret.String, format string, args ...any) error {
		text, err := os.ReadFile(filepath.Join(folder, "notifications."+fmt.Sprintf(format, args...)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a secret: %w", err)
		}
		*into = secret.String(strings.TrimRight(string(text), "\r\n"))
		return nil
	}
	errs := []error{read(&c.SMTP.Password, "smtp.password")}
	for i := range c.Webhooks {
		errs = append(errs, read(&c.Webhooks[i].SecretURL, "webhooks.%d.secretUrl", i), read(&c.Webhooks[i].SigningSecret, "webhooks.%d.signingSecret", i))
	}
	return errors.Join(errs...)
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// Check returns the errors in a configuration.
func (c *Config) Check() (out []policy.Problem) {
	add := func(path, remedy, format string, args ...any) {
		out = append(out, policy.Problem{Path: "notifications." + path, Message: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	c.SMTP.check(add)
	if c.PerHour < 1 {
		add("perHour", "set 1 or more", "with %d messages an hour nothing is sent", c.PerHour)
	}
	for i, a := range c.Administrators {
		at := fmt.Sprintf("administrators[%d]", i)
		if !validAddress(a) {
			add(at, "write an address such as ann@example.org", "%q is not an address", a)
		} else if slices.Contains(c.Administrators[:i], a) {
			add(at, "remove one of the two", "%s is listed twice", a)
		}
	}
	for i, e := range c.Required {
		if !slices.Contains(peoplev1.NoticeEvents(), e) {
			add(fmt.Sprintf("required[%d]", i), "use started, finished, failed, stopped, retried, preempted, waiting or stopping", "%q is not a kind of notice", e)
		}
	}
	if len(c.Administrators) > 0 && c.SMTP.Host == "" {
		add("administrators", "set smtp.host and smtp.from, or remove the addresses", "no mail can be sent without a mail server")
	}
	for i, text := range c.WebhookNetworks {
		switch p, err := netip.ParsePrefix(text); {
		case err != nil:
			add(fmt.Sprintf("webhookNetworks[%d]", i), "write one such as 10.20.0.0/16", "%q is not a network", text)
		case p.Masked() != p:
			add(fmt.Sprintf("webhookNetworks[%d]", i), "write "+p.Masked().String(), "%s is an address within a network", text)
		}
	}
	for i, text := range c.ClusterNetworks {
		if _, err := netip.ParsePrefix(text); err != nil {
			add(fmt.Sprintf("clusterNetworks[%d]", i), "write one such as 10.244.0.0/16", "%q is not a network", text)
		}
	}
	if c.WeeklyReport && len(c.Administrators) == 0 {
		add("weeklyReport", "list addresses in administrators; people choose it for themselves with: paictl notify set --weekly-report", "no administrator has an address for the report")
	}
	if u, err := url.Parse(c.WebhookProxy); c.WebhookProxy != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https") {
		add("webhookProxy", "write it as http://proxy.example.org:3128", "it is not the address of a proxy without a password")
	}
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		w.check(fmt.Sprintf("webhooks[%d]", i), add)
		for k := range i {
			if c.Webhooks[k].Name == w.Name {
				add(fmt.Sprintf("webhooks[%d].name", i), "give each webhook its own name", "another webhook has the name %q", w.Name)
				break
			}
		}
	}
	return out
}

type adder func(path, remedy, format string, args ...any)

func (s *SMTP) check(add adder) {
	if s.Host == "" {
		return
	}
	if strings.ContainsAny(s.Host, " /:@\r\n\t") && net.ParseIP(s.Host) == nil {
		add("smtp.host", "write its name only; the port is a separate setting", "%q is not the name of a server", s.Host)
	}
	if s.Port < 1 || s.Port > 65535 {
		add("smtp.port", "set 587 for starttls, 465 for implicit", "%d is not a port", s.Port)
	}
	if !validAddress(s.From) {
		add("smtp.from", "set the address that mails come from, such as cluster@example.org", "%q is not an address", s.From)
	}
	switch s.TLS {
	case TLSStart, TLSImplicit:
	case TLSNone:
		if s.Username != "" {
			add("smtp.tls", "use starttls or implicit, or remove the username", "the password would be sent without encryption")
		}
	default:
		add("smtp.tls", "use starttls, implicit or none", "%q is not a kind of encryption", s.TLS)
	}
	if (s.Username == "") != !s.Password.IsSet() {
		add("smtp.password", "set username and password, or neither", "a user name and a password belong together")
	}
	if s.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(s.CA)) {
		add("smtp.ca", "paste the certificates of the authority, with their lines -----BEGIN CERTIFICATE-----", "it has no certificate")
	}
}

func (w *Webhook) check(at string, add adder) {
	if !validName.MatchString(w.Name) {
		add(at+".name", "use 1 to 40 lower-case letters, digits and hyphens", "%q isn't a valid name", w.Name)
	}
	if !slices.Contains(Types(), w.Type) {
		add(at+".type", "use generic, slack, teams, feishu or dingtalk", "%q is not a type of webhook", w.Type)
	}
	if u, err := url.Parse(w.SecretURL.Reveal()); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		add(at+".secretUrl", "set the address that the chat gives for incoming webhooks; it begins with https://", "it is not the address of a webhook") // never shown
	}
	if w.SigningSecret.IsSet() && w.Type != TypeFeishu && w.Type != TypeDingTalk {
		add(at+".signingSecret", "remove it", "only feishu and dingtalk check signatures")
	}
	for i, s := range w.Events {
		if s != SubjectJobs && s != SubjectMachines {
			add(fmt.Sprintf("%s.events[%d]", at, i), "use jobs or machines", "%q is not a kind of event", s)
		}
	}
}

// wants reports whether a webhook receives notices about a subject. For jobs, groups holds the groups of the job's owner.
func (w *Webhook) wants(s Subject, groups []string) bool {
	if len(w.Events) > 0 && !slices.Contains(w.Events, s) {
		return false
	}
	return s != SubjectJobs || len(w.Groups) == 0 || slices.ContainsFunc(w.Groups, func(g string) bool { return slices.Contains(groups, g) })
}

// validAddress reports whether a text is a mail address without a display name. Such an address can't inject a header or a second receiver.
func validAddress(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Name == "" && a.Address == text && len(text) <= 320 && !strings.ContainsAny(text, " ,;<>\r\n\"")
}
