package httpapi

// API answers the routes.
type API struct{}
