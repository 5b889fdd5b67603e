int mergeAccounts(Account first, Account second, int limit) {
    int balance = first.balance() + second.balance();
    second.close();
    if (balance > limit) {
        notifyOwner(first.owner());
    }
    return balance;
}
