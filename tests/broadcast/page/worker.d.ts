// What the service worker's text begins with: the server writes it.
declare const VERSION: string
declare const SHELL: string[]
declare const clients: Clients
declare const registration: ServiceWorkerRegistration
declare function skipWaiting(): Promise<void>
declare function addEventListener(kind: "install" | "activate", act: (event: ExtendableEvent) => void): void
declare function addEventListener(kind: "fetch", act: (event: FetchEvent) => void): void
