package catalogue

// linked maps each service whose pages users open through the server to the value that holds the address for links.
var linked = map[string]string{"prometheus": "externalUrl", "alert-manager": "externalUrl", "grafana": "rootUrl"}

// configureLinks sets the public addresses of the services in linked. Addresses in the services' sections take precedence.
func (b *builder) configureLinks() {
	server := b.services[ServerService]
	if server == nil || server.Upstream != nil || !server.Enabled || server.Chart == nil {
		return
	}
	public := ProxyURL(server)
	if public == "" {
		return
	}
	behind, _ := merge(server.Chart.Values, server.Values)["door"].(map[string]any)
	for name, key := range linked {
		s := b.services[name]
		door, _ := behind[name].(map[string]any)
		if at, _ := door["url"].(string); at == "" || s == nil || s.Upstream != nil {
			continue
		}
		s.Values = mergeComputed(map[string]any{key: public + "/" + name + "/"}, s.Values)
	}
}
