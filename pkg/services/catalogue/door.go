package catalogue

// linked maps services with pages that users open through the server to the value that holds the address for links.
var linked = map[string]string{"prometheus": "externalUrl", "alert-manager": "externalUrl", "grafana": "rootUrl"}

// configureLinks sets the public address of services whose pages the server proxies, unless the services' sections set an address.
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
