package service

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/settings"
	"github.com/openpai/paictl/pkg/server/tls"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// entrance describes how users reach the server of a cluster.
type entrance struct {
	// URL is the server's address.
	URL string
	// Pages is the address of the web pages of other services. It is "" if the server doesn't proxy these pages.
	Pages string
	// Fingerprint is the fingerprint of the platform's own CA, which clients don't trust yet. It is "" if an administrator provides the
	// certificate.
	Fingerprint string
	// Service is the Service that must receive the traffic to the address. It is nil if no forwarding is necessary.
	Service *corev1.Service
}

// entrance determines how users reach the server. It returns nil if no server is ready.
func (c *opened) entrance(ctx context.Context, all []services.Status, d *services.Desired) (*entrance, error) {
	if !serverReady(all) {
		return nil, nil
	}
	s := d.Catalogue.Get(catalogue.ServerService)
	if s == nil || s.Upstream != nil || !s.Enabled {
		return nil, nil
	}
	var err error
	e := &entrance{Pages: catalogue.ProxyURL(s)}
	if hosts, port := catalogue.ServerAddresses(s); len(hosts) > 0 {
		e.URL = settings.Address(hosts[0], port)
	}
	if catalogue.BehindService(s) {
		if e.Service, err = c.cluster.Client.CoreV1().Services(kube.SystemNamespace).Get(ctx, catalogue.ServerService, metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("read the Service of the server: %w", err)
		}
	}
	if catalogue.OwnAuthority(s) {
		authority, err := tls.Read(ctx, c.cluster.Client)
		if err != nil {
			return nil, err
		}
		if authority != nil {
			e.Fingerprint = tls.Fingerprint(authority)
		}
	}
	return e, nil
}

func serverReady(all []services.Status) bool {
	return slices.ContainsFunc(all, func(s services.Status) bool {
		return s.Name == catalogue.ServerService && s.State == services.StateReady
	})
}

// asksForServer reports whether the names of a command include the server. Without names, a command works on all services.
func asksForServer(names, except []string) bool {
	means := func(some []string) bool {
		return slices.ContainsFunc(some, func(name string) bool { return catalogue.Resolve(name) == catalogue.ServerService })
	}
	return !means(except) && (len(names) == 0 || means(names))
}

// welcome prints how users sign in after the server has started. If there is no administrator, it creates a link, and the first administrator
// signs in with this link. The link is a secret, so no event of the run contains it.
func (c *opened) welcome(ctx context.Context, w io.Writer) error {
	all, desired, err := c.Compare(ctx)
	if err != nil {
		return err
	}
	e, err := c.entrance(ctx, all, desired)
	if err != nil || e == nil {
		return err
	}
	directory, err := people.Open(c.cluster.Config, people.Options{})
	if err != nil {
		return err
	}
	code, until, err := directory.OfferFirst(ctx)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, e.welcome(code, until))
	return err
}

// welcome returns the text that explains how to sign in. code is empty if there is an administrator.
func (e *entrance) welcome(code secret.String, until time.Time) string {
	url := cmp.Or(e.URL, "https://ADDRESS") // neither a name nor the address of a machine is known
	var b strings.Builder
	fmt.Fprintf(&b, "\nPeople sign in with: paictl login %s\n", url)
	b.WriteString(e.leads())
	if e.Fingerprint != "" {
		fmt.Fprintf(&b, "The authority of its certificate has the fingerprint\n  %s\n", e.Fingerprint)
	}
	if code.IsSet() {
		fmt.Fprintf(&b, "There is no administrator yet. This link makes one, once, until %s:\n  %s/first#%s\n", until.Format("2006-01-02 15:04 MST"), url, code.Reveal())
	}
	return b.String()
}

// leads describes the forwarding that must be set up for the server's Service. It returns "" if no forwarding is necessary.
func (e *entrance) leads() string {
	if e.Service == nil {
		return ""
	}
	switch s := e.Service; {
	case s.Spec.Type == corev1.ServiceTypeNodePort && len(s.Spec.Ports) > 0:
		text := fmt.Sprintf("That address must lead to port %d of the machines with a server: it is the NodePort of the Service %s.\n", s.Spec.Ports[0].NodePort, s.Name)
		if e.Pages != "" && len(s.Spec.Ports) > 1 {
			text += fmt.Sprintf("%s must lead to port %d: there are the pages of other services.\n", e.Pages, s.Spec.Ports[1].NodePort)
		}
		return text
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return fmt.Sprintf("That address must lead to the Service %s of %s, at %s inside the cluster.\n", s.Name, s.Namespace, s.Spec.ClusterIP)
	case len(s.Status.LoadBalancer.Ingress) == 0:
		return fmt.Sprintf("The Service %s has no address of a load balancer yet: kubectl -n %s get service %s\n", s.Name, s.Namespace, s.Name)
	default:
		at := s.Status.LoadBalancer.Ingress[0]
		return fmt.Sprintf("That address must lead to %s, the load balancer of the Service %s.\n", cmp.Or(at.Hostname, at.IP), s.Name)
	}
}

// writeEntrance adds a text about how users sign in to the status. It omits the text if the user may not read the configuration.
func (c *opened) writeEntrance(ctx context.Context, w io.Writer, all []services.Status) error {
	if !serverReady(all) {
		return nil
	}
	desired, err := services.FromCluster(store.New(c.cluster.Client), "")(ctx)
	if err != nil {
		return err
	}
	e, err := c.entrance(ctx, all, desired)
	if apierrors.IsForbidden(err) || e == nil || e.Fingerprint == "" {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%s: %s, fingerprint of the authority of its certificate:\n  %s\n", catalogue.ServerService, e.URL, e.Fingerprint)
	return err
}
