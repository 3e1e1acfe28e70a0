package assembly

import (
	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/proxy"
)

// openDoor returns the proxy for the pages of other services. The proxy reads the password of these services for each request, because the Secret may
// change while the program runs.
func openDoor(o Options) (*proxy.Proxy, error) {
	return proxy.New(proxy.Options{Services: o.Settings.Door, Password: servicePassword(o), Origin: o.Settings.ProxyOrigin, Own: o.Settings.OwnOrigin, Failed: func(service string, err error) {
		o.Log.Warn("a service behind the door can't be asked", "service", service, "error", err.Error())
	}})
}

// servicePassword returns a function that reads the password of the platform's own services, or nil without a password.
func servicePassword(o Options) func() (secret.String, error) {
	if o.AccessFile == "" {
		return nil
	}
	return func() (secret.String, error) {
		text, err := access.Read(o.AccessFile)
		return secret.String(text), err
	}
}

func openAlerts(o Options) (*alerts.Client, error) {
	at := o.Settings.Alerts
	ask := alerts.Options{URL: at.URL, Now: o.Now, Failed: func(err error) { o.Log.Warn("Alertmanager can't be asked", "error", err.Error()) }}
	if at.Password {
		ask.Password = servicePassword(o)
	}
	return alerts.New(ask)
}
